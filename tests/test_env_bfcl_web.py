"""BFCL V4 web search: tasks, the keyed service with its retries, and pages that must not be fetched."""

import datetime
import json
import logging
import socket
import ssl
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from web_site import HTML, site

from seal.client.server import TRIES
from seal.core.errors import DependencyError
from seal.core.types import Call
from seal.diagnose import diagnose
from seal.env import load_env
from seal.env.bfcl_web import KEY
from seal.env.bfcl_web.engine import NO_RESULTS, Engine
from seal.env.bfcl_web.fetch import Bounds, Failed, Refused, allowed, checked, fetch, is_public
from seal.env.bfcl_web.session import WebSession
from seal.policy.scripted import ReplayPolicy
from seal.rollout.engine import Request, play
from seal.verify.rollout import verify_rollout

TASKS = {task.task_id: task for task in load_env("bfcl_web").tasks()}
ONE = TASKS["web_search_base_0"]


@pytest.fixture(scope="module")
def server():
    with site() as running:
        yield running


@pytest.fixture
def here(server):
    """`(URL of the server, bounds that let it be asked)`."""
    server.asked.clear()
    server.searches = 0
    return f"http://{server.name}", Bounds(("*",), frozenset((server.name,)), seconds=1.0)


def engine(server, key="secret-key"):
    return Engine(key, f"http://{server.name}/search", 2.0)


def session(server, show_snippet=True):
    return WebSession(engine(server), Bounds(("*",), frozenset((server.name,)), 2.0), show_snippet)


def test_100_questions_with_and_without_snippets():
    assert len(TASKS) == 200
    assert Counter((task.category, task.split) for task in TASKS.values()) == {
        (f"web_search_{variant}", split): n
        for variant in ("base", "no_snippet")
        for split, n in (("train", 40), ("dev", 10), ("test", 50))
    }
    splits = {}
    for task in TASKS.values():
        splits.setdefault(task.scenario_id, set()).add(task.split)
    assert len(splits) == 100 and all(len(found) == 1 for found in splits.values())
    assert [task_id for task_id, task in TASKS.items() if task.known_bad] == [
        "web_search_base_0",
        "web_search_no_snippet_0",
    ]
    env = load_env("bfcl_web")
    assert [doc.name for doc in env.docs(ONE, 0)] == ["search_engine_query", "fetch_url_content"]
    enums = {fact.param: fact.value for fact in env.facts(ONE.toolset) if fact.kind == "enum"}
    assert enums["mode"] == ["raw", "markdown", "truncate"] and "wt-wt" in enums["region"]
    assert env.guidance(ONE)[0].startswith("For your final answer to the user")


def test_a_missing_key_is_one_clear_error(monkeypatch):
    monkeypatch.delenv(KEY, raising=False)
    env = load_env("bfcl_web")
    with pytest.raises(DependencyError, match=KEY):
        play(env, ReplayPolicy({}, "pythonic"), [Request("r", ONE, 0, 0)])
    assert env.open(ONE).call(ONE.turns[0].gold[0]).raw == '{"accepted": true}'  # judging needs none


def test_an_episode_over_the_fixture_and_its_verdict_without_it(server, here, monkeypatch):
    monkeypatch.setenv(KEY, "secret-key")
    url, _ = here
    env = load_env("bfcl_web", service=f"{url}/search", local=frozenset((server.name,)))
    answer = ONE.initial_state["answers"][0]
    texts = [
        '[search_engine_query(keywords="most expensive tea", max_results=2)]',
        f'[fetch_url_content(url="{url}/page", mode="truncate")]',
        f"{{'answer': '{answer}', 'context': 'read'}}",
    ]
    policy = ReplayPolicy({f"{ONE.task_id}/0": [texts]}, "pythonic")
    rollout = play(env, policy, [Request("r", ONE, 0, 0)])[0]
    assert rollout.steps[0].results[0].raw.startswith("[{'title': 'Most expensive tea', 'href': ")
    assert rollout.steps[1].results[0].raw == '{"content": "Tea\\nDa Hong\\u00a0Pao"}'
    assert rollout.stop_reason == "finished"
    monkeypatch.delenv(KEY)
    server.asked.clear()
    for task_answers, valid, label in ((ONE, True, "pass"), (TASKS["web_search_base_1"], False, "response_mismatch")):
        verdicts = verify_rollout(env, task_answers, rollout)
        assert verdicts[0].valid is valid
        primary = next(row for row in diagnose(env, task_answers, rollout, verdicts) if row.primary)
        assert primary.label == label
    assert not server.asked


def test_results_are_worded_as_officially(server, here):
    live = session(server)
    found = live.call(Call("search_engine_query", {"keywords": "tea", "max_results": 1})).raw
    assert found == (
        "[{'title': 'Most expensive tea', 'href': 'https://tea.example/best', 'body': 'Da Hong Pao is ...'}]"
    )
    bare = session(server, show_snippet=False).call(Call("search_engine_query", {"keywords": "tea"})).raw
    assert "body" not in bare and bare.count("href") == 3
    assert live.call(Call("search_engine_query", {"keywords": "nothing"})).raw == json.dumps({"error": NO_RESULTS})
    assert live.call(Call("search_engine_query", {"keywords": "broken"})).raw == json.dumps({"error": NO_RESULTS})
    url = f"http://{server.name}/page"
    assert json.loads(live.call(Call("fetch_url_content", {"url": url})).raw) == {"content": HTML}
    markdown = json.loads(live.call(Call("fetch_url_content", {"url": url, "mode": "markdown"})).raw)["content"]
    assert markdown.startswith("# Tea") and "x()" not in markdown
    assert live.call(Call("fetch_url_content", {"url": url, "mode": "pdf"})).raw == json.dumps(
        {"error": f"An error occurred while fetching {url}: Unsupported mode: pdf"}
    )
    assert (
        live.call(Call("fetch_url_content", {"url": "ftp://x"})).raw == "Error during execution: Invalid URL: ftp://x"
    )
    told = live.call(Call("fetch_url_content", {}))
    assert told.error_kind == "missing_argument" and "WebSearchAPI.fetch_url_content()" in told.raw
    assert live.call(Call("open", {})).error_kind == "unknown_tool"


def test_a_busy_service_is_asked_a_few_times_and_no_more(server, here, waits):
    for keywords in ("busy", "busy payload"):
        server.searches = 0
        waits.clear()
        found = engine(server).search(keywords, "wt-wt")
        assert "429" in found["error"] and server.searches == TRIES and waits == [2.0, 4.0, 8.0]
    server.searches = 0
    waits.clear()
    assert len(engine(server).search("busy once", "wt-wt")) == 3 and waits == [2.0]
    server.searches = 0
    for keywords in ("nothing", "broken"):  # an answer, though not one with results
        assert engine(server).search(keywords, "wt-wt") == {"error": NO_RESULTS}
    assert server.searches == 2


def test_no_message_holds_the_key(server, here, caplog):
    caplog.set_level(logging.INFO)
    wrong = engine(server, key="another-key")
    told = wrong.search("tea", "wt-wt")
    assert told == {"error": "401 Error: Unauthorized"}
    gone = Engine("another-key", "http://127.0.0.1:9/search", 1.0)
    assert "another-key" not in str(gone.search("tea", "wt-wt")) and "error" in gone.search("tea", "wt-wt")
    assert len(engine(server).search("tea", "wt-wt")) == 3 and "-key" not in caplog.text


PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "192.0.2.1",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "2002:7f00:1::",
    "64:ff9b::a00:1",
    "2001:db8::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "64:ff9b::808:808"])
def test_addresses_that_are(address):
    assert is_public(address)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.ip_addresses(network="10.0.0.0/8"), st.ip_addresses(network="fd00::/8")))
def test_no_private_address_is_public_however_it_is_written(address):
    assert not is_public(str(address))
    if address.version == 4:
        assert not is_public(f"::ffff:{address}") and not is_public(f"64:ff9b::{address}")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://tea.example/",
        "//tea.example/",
        "tea.example",
        "",
        "http://",
        "http:///x",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://localhost/",
        "http://localhost./",
        "http://169.254.169.254/latest/meta-data/",
        "http://user@1.1.1.1/",
        "http://1.1.1.1@127.0.0.1/",
        "http://1.1.1.1:22/",
        "https://1.1.1.1:80/",
        "http://1.1.1.1:99999/",
        "http://1.1.1.1/a b",
        "http://1.1.1.1/\r\nHost: x",
        "http://[bad/",
        "http://" + "a" * 70 + ".example/",
    ],
)
def test_urls_that_are_refused_before_anything_is_sent(url):
    with pytest.raises(Refused):
        checked(url, Bounds(("*",)))


def test_only_listed_hosts():
    assert allowed("en.wikipedia.org", ("wikipedia.org",)) and allowed("wikipedia.org", ("Wikipedia.org",))
    assert not allowed("evilwikipedia.org", ("wikipedia.org",)) and not allowed(
        "wikipedia.org.evil.com", ("wikipedia.org",)
    )
    with pytest.raises(Refused, match="list of hosts"):
        checked("http://1.1.1.1/", Bounds(("wikipedia.org",)))
    with pytest.raises(Refused, match="list of hosts"):
        checked("http://1.1.1.1/", Bounds())
    hosts = load_env("bfcl_web").hosts
    assert "en.wikipedia.org" in hosts and "*" not in hosts and len(hosts) > 50
    assert load_env("bfcl_web", hosts=("*",)).hosts == ("*",)


def test_a_name_with_one_private_address_is_refused(monkeypatch):
    def resolved(host, port, **options):
        addresses = {"mixed.example": ("93.184.216.34", "10.0.0.1"), "fine.example": ("93.184.216.34",)}[host]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    with pytest.raises(Refused, match="not public"):
        checked("http://mixed.example/", Bounds(("*",)))
    assert checked("https://fine.example/x", Bounds(("*",)))[1:] == ("93.184.216.34", 443)


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch):
    """A name that resolves to a public address first and to a private one later does not get its second chance."""
    answers = iter([("93.184.216.34",), ("127.0.0.1",)])
    asked = []

    def resolved(host, port, **options):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in next(answers)]

    def connect(address, timeout):
        asked.append(address)
        raise OSError("not in a test")

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(Failed):
        fetch("http://rebound.example/", Bounds(("*",)))
    assert asked == [("93.184.216.34", 80)]


@pytest.mark.parametrize("path", ["/to-private", "/to-metadata", "/to-file"])
def test_redirects_are_checked_anew(here, path):
    url, bounds = here
    with pytest.raises(Refused):
        fetch(url + path, bounds)


def test_redirects_are_followed_and_counted(server, here):
    url, bounds = here
    assert fetch(f"{url}/to-page", bounds).url == f"{url}/page"
    server.asked.clear()
    with pytest.raises(Failed, match="redirects"):
        fetch(f"{url}/loop", bounds)
    assert len(server.asked) == bounds.redirects + 1


@pytest.mark.parametrize("path", ["/drip", "/drip-headers"])
def test_a_slow_server_is_left_in_time(here, path):
    url, bounds = here
    started = time.monotonic()
    with pytest.raises(Failed, match="timed out"):
        fetch(url + path, bounds)
    assert time.monotonic() - started < bounds.seconds + 1


def test_a_big_page_is_cut_and_odd_ones_are_read(here):
    url, bounds = here
    page = fetch(f"{url}/big", Bounds(bounds.hosts, bounds.local, max_bytes=1000))
    assert page.text == "x" * 1000 and page.cut
    assert fetch(f"{url}/latin", bounds).text == "thé" and fetch(f"{url}/odd", bounds).text == "tea"
    assert fetch(f"{url}/page?q=thé&x=%20", bounds).text == HTML
    with pytest.raises(Failed, match="404 Error: Not Found") as missing:
        fetch(f"{url}/none", bounds)
    assert missing.value.status == 404
    with pytest.raises(Failed):
        fetch(f"{url}/garbage", bounds)


def test_localhost_needs_its_own_allowance(server, here):
    with pytest.raises(Refused):
        fetch(f"http://{server.name}/page", Bounds(("*",)))
    with pytest.raises(Refused):
        fetch(f"http://{server.name}/page", Bounds(("*",), frozenset(("127.0.0.1:1",))))
    assert not server.asked


def test_certificates_are_checked(tmp_path):
    with site(_self_signed(tmp_path)) as running, pytest.raises(Failed, match="CERTIFICATE_VERIFY_FAILED"):
        fetch(f"https://{running.name}/page", Bounds(("*",), frozenset((running.name,)), seconds=5.0))


def _self_signed(folder):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    file = folder / "server.pem"
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
