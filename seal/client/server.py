"""Asking a server over HTTP: a bounded number of tries, bounded bytes and seconds, no redirects, keys in no message.

What may pass (no connection, silence, 429, 5xx, an error in place of an answer) is asked again after a wait that
doubles, or that the server names in Retry-After; anything else is a failure at once. Every failure is a NoAnswer.
httpx and tenacity are imported when something is asked: most runs ask nothing.
"""

import json
import logging
import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from seal.core.errors import DependencyError, ParamError
from seal.core.types import Json

if TYPE_CHECKING:
    import httpx
    import tenacity

TRIES = 4  # requests for one answer
MAX_WAIT = 60.0  # seconds between two of them, whatever the server asks for
MAX_BYTES = 1 << 20  # of one answer
MAX_QUOTED = 2000  # characters of a refusal
NOT_READ = (ValueError, LookupError, TypeError, AttributeError, RecursionError)  # of an answer of another form


class ServerParams(Protocol):
    """What the parameters of every served model have (EndpointParams, ServeParams, JudgeParams, RewriteParams)."""

    url: str
    key_env: str
    seconds: float


class AskAgain(Exception):
    """An answer arrived and says that it may be another one later; raised by the function that reads it."""


class NoAnswer(DependencyError):
    """A server gave no answer that can be used.

    reason  what happened, with the URL
    reply   what the server wrote of it, at most MAX_QUOTED characters
    status  of HTTP; 0 where no response came, 200 where it could not be used
    wait    seconds after which the server wants to be asked again (0: it does not say); None: that would not help
    """

    def __init__(
        self, thing: str, reason: str, remedy: str, reply: str = "", status: int = 0, wait: float | None = None
    ):
        super().__init__(thing, f"{reason} {reply}".strip(), remedy)
        self.reason, self.reply, self.status, self.wait = reason, reply, status, wait


def json_object(body: bytes) -> dict[str, Json]:
    """An answer as a JSON object. Raises AskAgain where it holds an `error`, ValueError and TypeError for no object."""
    answer = json.loads(body)
    if not isinstance(answer, dict):
        raise TypeError("it is no object")
    if answer.get("error"):
        raise AskAgain(json.dumps(answer["error"], ensure_ascii=False))
    return answer


@dataclass(frozen=True, slots=True)
class Server:
    """A server and how long to wait for it. Raises ParamError where `url` is no http(s) URL.

    key_env     the environment variable that holds its key ("": it needs none), sent as a bearer token
    seconds     of silence that end a request; as long may an answer take once it has begun
    name        what it is, and `remedy` what helps, in errors
    first_wait  seconds before the second request, doubled before each further one
    """

    url: str
    key_env: str = ""
    seconds: float = 60.0
    name: str = "server"
    remedy: str = "start the server, or mend its url, model and key"
    first_wait: float = 1.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            remedy = "give a URL that begins with http:// or https://, such as http://localhost:8000/v1"
            raise ParamError(f"url of {self.name}", self.url or "empty", remedy)

    @classmethod
    def of(cls, params: ServerParams, name: str, remedy: str) -> "Server":
        return cls(params.url, params.key_env, params.seconds, name, remedy)

    def ask(
        self,
        path: str,
        body: Json = None,
        query: Mapping[str, str] | None = None,
        read: Callable[[bytes], Any] = json_object,
        what: str = "JSON object",
    ) -> Any:
        """What `read` makes of the answer to `body`, sent as JSON to `path` below the URL; with no body it is a GET.

        Args: `read` may raise AskAgain, or one of NOT_READ where the answer is no `what`. Raises NoAnswer;
        DependencyError where the key is not set.
        """
        import tenacity

        url = f"{self.url.rstrip('/')}/{path}".rstrip("/")

        def once() -> Any:
            answer, kind = self._send(url, body, query)
            try:
                return read(answer)
            except AskAgain as error:
                raise self._no_answer(f"{url}: an error", str(error), 200, wait=0.0) from None
            except NOT_READ as error:
                raise self._no_answer(f"{url}: no {what} ({error!r}, {kind})", status=200) from None

        stop = tenacity.stop_after_attempt(TRIES)
        again = tenacity.retry_if_exception(lambda error: isinstance(error, NoAnswer) and error.wait is not None)
        return tenacity.Retrying(stop=stop, wait=self._wait, retry=again, sleep=pause, reraise=True)(once)

    def _send(self, url: str, body: Json, query: Mapping[str, str] | None) -> tuple[bytes, str]:
        """One request: the body of the answer, and what kind of content the server says it is."""
        import httpx

        logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log a URL with the key in its query
        key, content = read_key(self.key_env), None if body is None else json.dumps(body, sort_keys=True).encode()
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        headers |= {"Authorization": f"Bearer {key}"} if key else {}
        method = "GET" if content is None else "POST"
        try:
            with (
                httpx.Client(verify=_certificates(), timeout=self.seconds) as client,
                client.stream(method, url, content=content, params=query, headers=headers) as response,
            ):
                if not response.is_success:
                    raise self._refused(url, response)
                return self._read(url, response), response.headers.get("Content-Type", "")
        except (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError) as error:
            # what is no HTTPError (unreachable, timed out, cut off) is a host that is none, or a proxy of unknown kind
            wait = 0.0 if isinstance(error, httpx.HTTPError) else None
            raise self._no_answer(f"{url}: {str(error) or type(error).__name__}", wait=wait) from None

    def _refused(self, url: str, response: "httpx.Response") -> NoAnswer:
        status = response.status_code
        moved = " (redirections are not followed: name the server itself)" if response.is_redirect else ""
        reply = next(response.iter_bytes(MAX_QUOTED), b"").decode(errors="replace") if 400 <= status < 500 else ""
        wait = wait_of(response.headers.get("Retry-After", "")) if status == 429 or status >= 500 else None
        return self._no_answer(f"{url}: {status} {response.reason_phrase}{moved}", reply, status, wait)

    def _read(self, url: str, response: "httpx.Response") -> bytes:
        """The whole body, within a size and a time; a server may also send for ever."""
        body, end = b"", time.monotonic() + self.seconds
        for part in response.iter_bytes():
            body += part
            if len(body) > MAX_BYTES:
                raise self._no_answer(f"{url}: an answer of more than {MAX_BYTES} bytes")
            if time.monotonic() > end:
                raise self._no_answer(f"{url}: still sending after {self.seconds:g} s", wait=0.0)
        return body

    def _no_answer(self, reason: str, reply: str = "", status: int = 0, wait: float | None = None) -> NoAnswer:
        if key := read_key(self.key_env):  # a server may quote it
            reason, reply = reason.replace(key, "***"), reply.replace(key, "***")
        return NoAnswer(self.name, reason, self.remedy, reply[:MAX_QUOTED], status, wait)

    def _wait(self, state: "tenacity.RetryCallState") -> float:
        """Seconds until the next request: the first wait doubled each time, longer where the server asks for it."""
        doubled = self.first_wait * 2 ** (state.attempt_number - 1)
        return min(max(doubled, state.outcome.exception().wait), MAX_WAIT)


def read_key(variable: str, remedy: str = "export it, or leave key_env empty where the server needs none") -> str:
    """The key in an environment variable; "" where no variable is named.

    Raises DependencyError where it is not set, or holds what no HTTP header takes; no message holds the key.
    """
    key = os.environ.get(variable, "").strip() if variable else ""
    if variable and not key:
        raise DependencyError("key of a server", f"{variable} is not set", remedy)
    if not (key.isascii() and key.isprintable()):
        value = f"{variable} has a character that no HTTP header takes, such as the end of a line"
        raise DependencyError("key of a server", value, "export the key alone")
    return key


def wait_of(retry_after: str) -> float:
    """Seconds from now of a Retry-After header, a number or a date (RFC 9110, 10.2.3); 0 for anything else."""
    try:
        if retry_after.strip().isdecimal():
            return float(retry_after)
        return max((parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0


def pause(seconds: float) -> None:
    """Wait before asking again; a function of its own, so that tests need not wait."""
    time.sleep(seconds)


@cache
def _certificates() -> ssl.SSLContext:
    """Those that the system trusts; reading them takes 50 ms."""
    return ssl.create_default_context()
