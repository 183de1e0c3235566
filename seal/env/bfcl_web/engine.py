"""The keyed search service (SerpApi's DuckDuckGo engine): one query, bounded tries, no key in any message."""

import json
from dataclasses import dataclass
from http.client import responses

from seal.client.server import NOT_READ, AskAgain, NoAnswer, Server
from seal.core.types import Json

SERVICE = "https://serpapi.com/search"
FIRST_WAIT = 2.0  # seconds, where the service says that there were too many requests
TOO_MANY = "429"
NO_RESULTS = "Failed to retrieve the search results from server. Please try again later."


@dataclass(frozen=True, slots=True)
class Engine:
    """Where and with which key to search."""

    key: str
    service: str = SERVICE
    seconds: float = 20.0

    def search(self, keywords: str, region: str) -> list[Json] | dict[str, str]:
        """Organic results, or `{"error": ...}` as officially; so is a service that does not answer."""
        query = {"engine": "duckduckgo", "q": keywords, "kl": region, "output": "json", "api_key": self.key}
        server = Server(self.service, seconds=self.seconds, name="web search", first_wait=FIRST_WAIT)
        try:
            found = server.ask("", query=query, read=_organic_results)
        except NoAnswer as error:
            message = error.reply if error.status == 200 else error.reason
            if error.status >= 300:
                message = f"{error.status} Error: {responses.get(error.status, 'Unknown')}"
            return {"error": message.partition(" for url:")[0].replace(self.key, "***")}
        return {"error": NO_RESULTS} if found is None else found


def _organic_results(body: bytes) -> list[Json] | None:
    """The results in an answer; None where it holds none. Raises AskAgain where the service is busy."""
    try:
        answer = json.loads(body)
        busy, found = str(answer.get("error", "")), answer.get("organic_results")
    except NOT_READ:
        return None
    if TOO_MANY in busy:
        raise AskAgain(busy)
    return found if isinstance(found, list) else None
