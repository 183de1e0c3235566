"""Whatever a server does, there is a chat completion or one clear error; the key goes nowhere else."""

import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.client.completions import MAX_BYTES, Unanswered, completion

MESSAGE = {"role": "assistant", "content": "hi"}
GOOD = json.dumps({"choices": [{"message": MESSAGE}]}).encode()
SECONDS = 0.5


@contextmanager
def server(answer, pause=0.0):
    """Answers every connection with these bytes, pausing after each of the body; yields its URL and what it heard."""
    at = answer.find(b"\r\n\r\n") + 4
    heard, listening = [], socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
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
    length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith(b"content-length:"))
    return head + file.read(length)


def http(body, status="200 OK", **headers):
    fields = {"Content_Length": str(len(body)), "Content_Type": "application/json"} | headers
    told = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items() if value is not None)
    return f"HTTP/1.1 {status}\r\n{told}Connection: close\r\n\r\n".encode() + body


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BAD = [
    ("cut off", http(GOOD, Content_Length="999"), "cut off, 9", True),
    ("cut chunks", CHUNKED + b"ff\r\n" + GOOD, "IncompleteRead", True),
    ("no chunks", CHUNKED + b"xyz\r\n" + GOOD, "IncompleteRead", True),
    ("no HTTP", b"220 mail ready\r\n", "BadStatusLine", True),
    ("nothing", b"", "closed connection without response", True),
    ("no JSON", http(b"<html>", Content_Type="text/html"), "JSONDecodeError", False),
    ("its type", http(b"<html>", Content_Type="text/html"), "text/html", False),
    ("no text", http(b"\xff\xfe\x00"), "no chat completion", False),
    ("empty", http(b""), "no chat completion", False),
    ("deep", http(b"[" * 200_000), "RecursionError", False),
    ("other JSON", http(b"[]"), "no chat completion", False),
    ("no choice", http(b'{"choices": []}'), "no chat completion", False),
    ("no object", http(b'{"choices": [{"message": "hi"}]}'), "no object", False),
    ("huge", http(b" " * (MAX_BYTES + 9)), f"more than {MAX_BYTES} bytes", False),
    ("moved", http(b"", "302 Found", Location="http://127.0.0.1:9/"), "302 Found (redirections are not", False),
    ("moved for good", http(b"", "308 Moved", Location="http://127.0.0.1:9/"), "redirections are not", False),
    ("refused", http(b"{}", "401 Unauthorized"), "401", False),
    ("broken", http(b"{}", "503 Busy"), "503", True),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "says", "passing"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_answer_is_one_clear_error(answer, says, passing):
    with server(answer) as (url, _), pytest.raises(Unanswered) as told:
        completion(url, b"{}", "secret-key", SECONDS)
    assert says in str(told.value) and told.value.passing == passing
    assert str(told.value).startswith(url) and "secret-key" not in str(told.value)


@pytest.mark.parametrize("answer", [http(GOOD), http(GOOD, Content_Length=None), CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (
    len(GOOD), GOOD), http(GOOD, Content_Type="text/plain")])  # fmt: skip
def test_a_completion_is_taken_however_it_is_sent(answer):
    with server(answer) as (url, heard):
        assert completion(url, b'{"a": 1}', "secret-key", SECONDS) == MESSAGE
    assert b"POST /v1/chat/completions" in heard[0] and b"Bearer secret-key" in heard[0]


@pytest.mark.parametrize(("body", "pause", "says"), [(GOOD, 30.0, "timed out"), (b" " * 400, 0.05, "still sending")])
def test_a_server_that_hangs_or_trickles_is_left(body, pause, says):
    started = time.monotonic()
    with server(http(body), pause) as (url, _), pytest.raises(Unanswered, match=says) as told:
        completion(url, b"{}", "", SECONDS)
    assert told.value.passing and time.monotonic() - started < 8  # the answer takes ten seconds and more


@pytest.mark.parametrize("key", ["abc\n", "abc\r\nX: y", "schl\u00fcssel", "\u2603"])
def test_a_key_that_no_header_takes_is_not_told(key):
    with pytest.raises(Unanswered, match="the key has a character") as told:
        completion("http://127.0.0.1:9/v1", b"{}", key, SECONDS)
    assert key not in str(told.value)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_an_answer_or_an_error(answer):
    with server(http(answer)) as (url, _), pytest.raises(Unanswered):
        completion(url, b"{}", "", SECONDS)
