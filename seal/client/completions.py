"""Asking an OpenAI-compatible server, over plain HTTP: for one chat completion, or anything else in JSON."""

import hashlib
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from seal.core.types import Json
from seal.store.files import read_record, write_json

MAX_BYTES = 1 << 20  # of one answer


class Unanswered(Exception):
    """No answer came back. `passing`: asking again may help; `said`: what it wrote of a refused request."""

    def __init__(self, reason: str, passing: bool = False, said: str = ""):
        super().__init__(reason)
        self.passing, self.said = passing, said


def completion(url: str, body: bytes, key: str, seconds: float) -> dict[str, Json]:
    """The message of the first choice that answers `body`, a request as JSON.

    Args: `url` is what `/chat/completions` follows; `key` is sent as a bearer token ("": none), never kept; `seconds`
    of silence end the call, and as long may the answer take once it has begun. Raises Unanswered.
    """
    url = f"{url.rstrip('/')}/chat/completions"
    said, kind = _posted(url, body, key, seconds)
    try:
        message = json.loads(said)["choices"][0]["message"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise Unanswered(f"{url}: no chat completion ({error!r}, {kind})") from None
    if not isinstance(message, dict):
        raise Unanswered(f"{url}: no chat completion (a message that is no object)")
    return message


def asked(url: str, body: Json, key: str, seconds: float) -> dict[str, Json]:
    """The JSON object that answers `body` at `url`, in full; the rest as for `completion`. Raises Unanswered."""
    said, kind = posted(url, body, key, seconds)
    try:
        answer = json.loads(said)
    except (ValueError, RecursionError) as error:
        raise Unanswered(f"{url}: no JSON ({error!r}, {kind})") from None
    if not isinstance(answer, dict):
        raise Unanswered(f"{url}: no JSON object")
    return answer


def posted(url: str, body: Json, key: str, seconds: float) -> tuple[bytes, str]:
    """What the server says to `body` at `url`, as it is, and the kind of content that it is. Raises Unanswered."""
    return _posted(url, json.dumps(body).encode(), key, seconds)


def _posted(url: str, body: bytes, key: str, seconds: float) -> tuple[bytes, str]:
    """What came back, and what kind of content the server says it is."""
    if not (key.isascii() and key.isprintable()):  # nothing that tells of it may hold the key
        raise Unanswered(f"{url}: the key has a character that no HTTP header takes, such as a line's end")
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        with _OPENER.open(urllib.request.Request(url, body, headers), timeout=seconds) as response:
            return _read(url, response, seconds), response.headers.get_content_type()
    except urllib.error.HTTPError as error:
        moved = " (redirections are not followed: name the server itself)" if 300 <= error.code < 400 else ""
        said = error.read(2000).decode(errors="replace") if 400 <= error.code < 500 else ""
        raise Unanswered(f"{url}: {error.code} {error.reason}{moved}", error.code >= 500, said) from None
    except OSError as error:  # unreachable, reset, timed out
        raise Unanswered(f"{url}: {getattr(error, 'reason', error)}", passing=True) from None
    except http.client.HTTPException as error:  # no HTTP, or cut off in the middle
        raise Unanswered(f"{url}: {error!r}", passing=True) from None


def kept(cache: Path, body: dict[str, Json], ask: Callable[[bytes], str]) -> str:
    """The text that answers `body`: from disk, by a hash of the request, where it was asked before, else by `ask`."""
    text = json.dumps(body, sort_keys=True)
    path = cache / f"{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.json"
    if not path.exists():
        write_json(path, {"request": body, "answer": ask(text.encode())})
    return read_record(path, {"answer": str})["answer"]


class _Staying(urllib.request.HTTPRedirectHandler):
    """A redirection would take the key along and lose the request."""

    def redirect_request(self, *given: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_Staying)


def _read(url: str, response: http.client.HTTPResponse, seconds: float) -> bytes:
    """The whole body, within a size and a time; a server may also send for ever."""
    said, end = b"", time.monotonic() + seconds
    while chunk := response.read1(MAX_BYTES):
        said += chunk
        if len(said) > MAX_BYTES:
            raise Unanswered(f"{url}: an answer of more than {MAX_BYTES} bytes")
        if time.monotonic() > end:
            raise Unanswered(f"{url}: still sending after {seconds:g} s", passing=True)
    if response.length:
        raise Unanswered(f"{url}: the answer is cut off, {response.length} bytes are missing", passing=True)
    return said
