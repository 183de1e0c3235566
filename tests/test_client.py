"""Whatever a server does, there is an answer or one clear error, after a few tries; the key goes nowhere else."""

import hashlib
import json
import logging
import pickle
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.client.chat import cached, chat
from seal.client.server import MAX_BYTES, MAX_WAIT, TRIES, NoAnswer, Server, wait_of
from seal.core.errors import ArtifactError, DependencyError, ParamError

MESSAGE = {"role": "assistant", "content": "hi"}
GOOD = json.dumps({"choices": [{"message": MESSAGE}]}).encode()
SECONDS = 0.5


@contextmanager
def server(*answers, pause=0.0):
    """Answers the connections with these bytes, one after the other, the last of them from then on.

    Pauses after each byte of a body. Yields its URL and what it heard.
    """
    heard, listening = [], socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                answer = answers[min(len(heard), len(answers) - 1)]
                at = answer.find(b"\r\n\r\n") + 4
                heard.append(_request(connection))
                try:
                    head, body = answer[:at], answer[at:]
                    for piece in (head, *(body[i : i + 1] for i in range(len(body)))) if pause else (answer,):
                        connection.sendall(piece)
                        time.sleep(pause)
                except OSError:
                    continue

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", heard
    finally:
        listening.close()


def _request(connection):
    """All of it: closing with something unread would reset the connection."""
    file, head = connection.makefile("rb"), b""
    while (line := file.readline()).strip():
        head += line
    length = next((int(line[15:]) for line in head.splitlines() if line.lower().startswith(b"content-length:")), 0)
    return head + file.read(length)


def http(body, status="200 OK", **headers):
    fields = {"Content_Length": str(len(body)), "Content_Type": "application/json"} | headers
    told = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items() if value is not None)
    return f"HTTP/1.1 {status}\r\n{told}Connection: close\r\n\r\n".encode() + body


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BUSY = http(b"{}", "503 Busy")
TOO_MANY = http(b"{}", "429 Too Many Requests", Retry_After="7")
ERROR = http(b'{"error": {"message": "overloaded", "code": 502}}')
BAD = [
    ("cut off", http(GOOD, Content_Length="999"), "expected 999", True),
    ("cut chunks", CHUNKED + b"ff\r\n" + GOOD, "incomplete chunked read", True),
    ("no chunks", CHUNKED + b"xyz\r\n" + GOOD, "illegal chunk header", True),
    ("no HTTP", b"220 mail ready\r\n\r\n", "illegal status line", True),
    ("nothing", b"", "disconnected without sending a response", True),
    ("no JSON", http(b"<html>", Content_Type="text/html"), "JSONDecodeError", False),
    ("its type", http(b"<html>", Content_Type="text/html"), "text/html", False),
    ("no text", http(b"\xff\xfe\x00"), "no chat completion", False),
    ("empty", http(b""), "no chat completion", False),
    ("half", http(GOOD[:-9]), "no chat completion", False),
    ("deep", http(b"[" * 200_000), "RecursionError", False),
    ("other JSON", http(b"[]"), "it is no object", False),
    ("no choice", http(b'{"choices": []}'), "no chat completion", False),
    ("no object", http(b'{"choices": [{"message": "hi"}]}'), "no chat completion", False),
    ("huge", http(b" " * (MAX_BYTES + 9)), f"more than {MAX_BYTES} bytes", False),
    ("moved", http(b"", "302 Found", Location="http://127.0.0.1:9/"), "302 Found (redirections are not", False),
    ("moved for good", http(b"", "308 Moved", Location="http://127.0.0.1:9/"), "redirections are not", False),
    ("refused", http(b"{}", "401 Unauthorized"), "401", False),
    ("tells the key", http(b"no secret-key here", "401 Unauthorized"), "no *** here", False),
    ("broken", BUSY, "503", True),
    ("too many", TOO_MANY, "429", True),
    ("an error for an answer", ERROR, "overloaded", True),
]  # fmt: skip


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("THE_KEY", "secret-key")
    return "THE_KEY"


def said(url, key_env="", body=None, seconds=SECONDS):
    """The text of an answer."""
    return chat(Server(url, key_env, seconds, "model"), body or {}, lambda choice: choice["message"]["content"])


@pytest.mark.parametrize(("answer", "says", "retryable"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_answer_is_one_clear_error(answer, says, retryable, key, waits):
    with server(answer) as (url, heard), pytest.raises(NoAnswer) as told:
        said(url, key)
    assert says in str(told.value) and (told.value.wait is not None) == retryable
    assert told.value.reason.startswith(url) and "secret-key" not in str(told.value)
    assert len(heard) == (TRIES if retryable else 1) and len(waits) == len(heard) - 1


@pytest.mark.parametrize("answer", [http(GOOD), http(GOOD, Content_Length=None), CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (
    len(GOOD), GOOD), http(GOOD, Content_Type="text/plain")])  # fmt: skip
def test_a_completion_is_taken_however_it_is_sent(answer, key):
    with server(answer) as (url, heard):
        assert said(url, key, {"b": 1, "a": 2}) == "hi"
    assert b"POST /v1/chat/completions" in heard[0] and b"Bearer secret-key" in heard[0]
    assert heard[0].endswith(b'{"a": 2, "b": 1}')


@pytest.mark.parametrize(
    ("first", "waited"), [(TOO_MANY, 7.0), (BUSY, 1.0), (ERROR, 1.0), (http(GOOD, Content_Length="999"), 1.0)]
)
def test_what_passes_is_asked_again(first, waited, waits):
    with server(first, http(GOOD)) as (url, heard):
        assert said(url) == "hi"
    assert len(heard) == 2 and heard[0] == heard[1] and waits == [waited]


def test_waits_double_and_have_an_end(waits):
    with server(BUSY) as (url, _), pytest.raises(NoAnswer, match="503"):
        said(url)
    assert waits == [1.0, 2.0, 4.0]
    waits.clear()
    with server(http(b"", "429 Slow", Retry_After="86400")) as (url, _), pytest.raises(NoAnswer, match="429"):
        said(url)
    assert waits == [MAX_WAIT] * 3


def test_a_wait_may_be_a_date():
    soon = datetime.now(UTC) + timedelta(seconds=30)
    assert 25 < wait_of(format_datetime(soon, usegmt=True)) <= 30
    for nothing in ("", "soon", "-5", "Tue, 01 Dec 1998 10:00:00 GMT", "nan"):
        assert wait_of(nothing) == 0


def test_a_server_that_is_not_there_is_asked_a_few_times(waits):
    with pytest.raises(NoAnswer, match="refused") as told:
        said("http://127.0.0.1:9/v1")
    assert told.value.wait == 0 and len(waits) == TRIES - 1


@pytest.mark.parametrize(("body", "pause", "says"), [(GOOD, 30.0, "timed out"), (b" " * 400, 0.05, "still sending")])
def test_a_server_that_hangs_or_trickles_is_left(body, pause, says, monkeypatch):
    monkeypatch.setattr("seal.client.server.TRIES", 1)
    started = time.monotonic()
    with server(http(body), pause=pause) as (url, _), pytest.raises(NoAnswer, match=says) as told:
        said(url)
    assert told.value.wait == 0 and time.monotonic() - started < 8  # the answer takes ten seconds and more


def test_silence_is_asked_again(waits):
    """The second connection waits behind the first in this server, so that each of them runs into the limit."""
    with server(http(GOOD), pause=30.0) as (url, _), pytest.raises(NoAnswer, match="timed out"):
        said(url, seconds=0.1)
    assert len(waits) == TRIES - 1


def test_a_redirect_takes_nothing_along(key):
    with server(http(GOOD)) as (elsewhere, heard):
        moved = http(b"", "307 Temporary Redirect", Location=f"{elsewhere}/chat/completions")
        with server(moved) as (url, _), pytest.raises(NoAnswer, match="redirections are not followed"):
            said(url, key)
    assert not heard


@pytest.mark.parametrize("value", ["abc\r\nX: y", "schl\u00fcssel", "\u2603"])
def test_a_key_that_no_header_takes_is_not_told(value, monkeypatch):
    monkeypatch.setenv("THE_KEY", value)
    with pytest.raises(DependencyError, match="THE_KEY has a character") as told:
        said("http://127.0.0.1:9/v1", "THE_KEY")
    assert value not in str(told.value)


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_a_key_that_is_not_set_is_one_error_before_anything_is_sent(value, monkeypatch, waits):
    monkeypatch.delenv("THE_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("THE_KEY", value)
    with server(http(GOOD)) as (url, heard), pytest.raises(DependencyError, match="THE_KEY is not set"):
        said(url, "THE_KEY")
    assert not heard and not waits


def test_the_end_of_a_line_is_no_part_of_a_key(monkeypatch):
    monkeypatch.setenv("THE_KEY", "secret-key\n")
    with server(http(GOOD)) as (url, heard):
        assert said(url, "THE_KEY") == "hi"
    assert b"Bearer secret-key\r\n" in heard[0]


def test_a_url_is_one():
    for url in ("", "localhost:8000", "ftp://x", "file:///etc/passwd"):
        with pytest.raises(ParamError, match="url of model"):
            Server(url, name="model")
    for url in ("http://[bad/", "http://a b/", "http://" + "a" * 70 + ".example/"):
        with pytest.raises(NoAnswer):
            said(url)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "gopher://127.0.0.1:9", "http://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_one_error(proxy, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with server(http(GOOD)) as (url, heard), pytest.raises(NoAnswer):
        said(url.replace("127.0.0.1", "server.example"))
    assert not heard


def test_no_log_holds_a_key(caplog, key):
    caplog.set_level(logging.INFO)
    with server(http(b"{}")) as (url, heard):
        assert Server(url, seconds=SECONDS).ask("search", query={"api_key": "secret-key"}) == {}
    assert heard[0].startswith(b"GET /v1/search?api_key=secret-key") and "secret-key" not in caplog.text


def test_many_may_ask_at_once_and_each_gets_its_own_answer(tmp_path):
    def ask(i):
        return cached(tmp_path, {"i": i % 5}, str, lambda: said(url))

    with server(http(GOOD)) as (url, heard), ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(40))) == {"hi"}
    assert 5 <= len(heard) <= 40 and len(list(tmp_path.iterdir())) == 5
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}


REQUEST = {"model": "m", "messages": [{"role": "user", "content": "h\u00e9"}], "a": 1}


def test_an_answer_is_asked_for_once(tmp_path):
    assert cached(tmp_path / "c", REQUEST, str, lambda: "one") == "one"
    assert cached(tmp_path / "c", dict(reversed(REQUEST.items())), str, lambda: pytest.fail("asked")) == "one"
    assert cached(tmp_path / "c", {**REQUEST, "a": 2}, str, lambda: "two") == "two"
    with pytest.raises(NoAnswer):
        cached(tmp_path / "d", REQUEST, str, lambda: said("http://127.0.0.1:9/v1"))
    assert not (tmp_path / "d").exists()
    with pytest.raises(ArtifactError):
        cached(tmp_path / "c", REQUEST, {"text": str}, lambda: pytest.fail("asked"))


def older(shape):
    """How answers were kept before there was one form, (file, content): judge and rewording, user of tau2, policy."""
    text = json.dumps(REQUEST, sort_keys=True).encode()
    sha, blake = hashlib.sha256(text).hexdigest(), hashlib.blake2b(text, digest_size=16).hexdigest()
    return {
        "judge": (blake, json.dumps({"answer": "yes", "request": REQUEST}, indent=1, sort_keys=True) + "\n", "yes"),
        "user": (
            sha,
            json.dumps({"request": REQUEST, "message": MESSAGE}, sort_keys=True, indent=1),
            MESSAGE,
        ),
        "policy": (sha, json.dumps({"request": REQUEST, "answer": {"text": "t", "finish": "stop"}}, indent=1),
                   {"text": "t", "finish": "stop"}),
    }[shape]  # fmt: skip


@pytest.mark.parametrize("who", ["judge", "user", "policy"])
def test_answers_kept_by_older_versions_are_read(who, tmp_path):
    name, content, answer = older(who)
    (tmp_path / f"{name}.json").write_text(content)
    shape = {"content": object} if who == "user" else type(answer)
    assert cached(tmp_path, REQUEST, shape, lambda: pytest.fail("asked")) == answer


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_an_answer_or_an_error(answer):
    with server(http(answer)) as (url, _), pytest.raises(NoAnswer):
        said(url)


def test_an_error_of_a_worker_process_comes_back_as_what_it_is():
    error = NoAnswer("model", "http://x: 401 Unauthorized", "mend it", "no", 401)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is NoAnswer and str(again) == str(error) and again.exit_code == DependencyError.exit_code
