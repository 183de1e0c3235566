"""Asking an OpenAI-compatible server for one chat completion, over plain HTTP."""

import json
import urllib.error
import urllib.request

from seal.core.types import Json

MAX_BYTES = 1 << 20  # of one answer


class Unanswered(Exception):
    """No chat completion came back. `passing`: asking again may help."""

    def __init__(self, reason: str, passing: bool = False):
        super().__init__(reason)
        self.passing = passing


def completion(url: str, body: bytes, key: str, seconds: float) -> dict[str, Json]:
    """The message of the first choice that answers `body`, a request as JSON.

    Args: `url` is what `/chat/completions` follows; `key` is sent as a bearer token ("": none), never kept; `seconds`
    of silence end the call. Raises Unanswered.
    """
    url = f"{url.rstrip('/')}/chat/completions"
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=seconds) as response:
            said = response.read(MAX_BYTES + 1)
        if len(said) > MAX_BYTES:
            raise Unanswered(f"{url}: an answer of more than {MAX_BYTES} bytes")
        message = json.loads(said)["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        raise Unanswered(f"{url}: {error.code} {error.reason}", passing=error.code >= 500) from None
    except OSError as error:  # unreachable, reset, timed out
        raise Unanswered(f"{url}: {getattr(error, 'reason', error)}", passing=True) from None
    except (ValueError, LookupError, TypeError) as error:
        raise Unanswered(f"{url}: no chat completion ({error!r})") from None
    if not isinstance(message, dict):
        raise Unanswered(f"{url}: no chat completion (a message that is no object)")
    return message
