"""The keyed search service (SerpApi's DuckDuckGo engine): one query, bounded retries, no key in any message."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from seal.core.types import Json
from seal.env.bfcl_web.fetch import Bounds, Failed, Refused, fetch

SERVICE = "https://serpapi.com/search"
TRIES = 4  # of one query, where the service says that there were too many
FIRST_WAIT = 2.0  # seconds, doubled each time
TOO_MANY = 429
NO_RESULTS = "Failed to retrieve the search results from server. Please try again later."


@dataclass(frozen=True, slots=True)
class Engine:
    """Where and with which key to search. `sleep` waits between tries; `local` as in Bounds."""

    key: str
    service: str = SERVICE
    local: frozenset[str] = frozenset()
    seconds: float = 20.0
    sleep: Callable[[float], None] = time.sleep

    def search(self, keywords: str, region: str) -> list[Json] | dict[str, str]:
        """Organic results, or `{"error": ...}` as officially; a service that stays busy is an error after TRIES."""
        query = {"engine": "duckduckgo", "q": keywords, "kl": region, "output": "json", "api_key": self.key}
        wait = FIRST_WAIT
        for left in reversed(range(TRIES)):
            answer = self._ask(query)
            if not _busy(answer) or not left:
                break
            self.sleep(wait)
            wait *= 2
        if not isinstance(answer.get("organic_results"), list):
            return {"error": self._clean(str(answer["error"])) if _busy(answer) or "fault" in answer else NO_RESULTS}
        return answer["organic_results"]

    def _ask(self, query: dict[str, str]) -> dict[str, Json]:
        host = self.service.split("/")[2].partition(":")[0]
        bounds = Bounds((host,), self.local, self.seconds, redirects=0)
        try:
            page = fetch(f"{self.service}?{urlencode(query)}", bounds)
            answer = json.loads(page.text)
        except (Failed, Refused) as error:
            return {"error": str(error), "fault": getattr(error, "status", 0)}
        except (ValueError, RecursionError):
            return {}
        return answer if isinstance(answer, dict) else {}

    def _clean(self, message: str) -> str:
        """A message without the URL it names, for that holds the key."""
        return message.partition(" for url:")[0].replace(self.key, "***")


def _busy(answer: dict[str, Json]) -> bool:
    return answer.get("fault") == TOO_MANY or str(TOO_MANY) in str(answer.get("error", ""))
