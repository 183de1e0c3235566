"""The two tools of BFCL's web search, live, and their silent stand-in for when calls are run again."""

import importlib
from typing import Any

from seal.core.errors import DependencyError
from seal.core.types import Call, Json, Result
from seal.env.base import Session
from seal.env.bfcl.dispatch import called, result_of
from seal.env.bfcl_web.engine import Engine
from seal.env.bfcl_web.fetch import Bounds, Failed, Refused, fetch

TOOLS = {"search_engine_query": ("keywords", "max_results", "region"), "fetch_url_content": ("url", "mode")}
MODES = ("raw", "markdown", "truncate")


class WebSearchAPI:
    """The tools under their official names; its public methods are what a policy calls."""

    def __init__(self, engine: Engine, bounds: Bounds, show_snippet: bool):
        self._engine, self._bounds, self._show_snippet = engine, bounds, show_snippet

    def search_engine_query(self, keywords: str, max_results: int = 10, region: str = "wt-wt") -> Json:
        found = self._engine.search(str(keywords), str(region))
        if isinstance(found, dict):
            return found
        names = {"title": "title", "href": "link"} | ({"body": "snippet"} if self._show_snippet else {})
        return [{name: entry.get(key, "") for name, key in names.items()} for entry in found[:max_results]]

    def fetch_url_content(self, url: str, mode: str = "raw") -> Json:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"Invalid URL: {url}")
        try:
            if mode not in MODES:
                raise ValueError(f"Unsupported mode: {mode}")
            return {"content": as_text(fetch(url, self._bounds).text, mode)}
        except (Refused, Failed, ValueError) as error:
            return {"error": f"An error occurred while fetching {url}: {error}"}


class SilentSession(Session):
    """Runs calls again without the web: what they returned then is in the rollout, and nothing rests on it."""

    def call(self, call: Call) -> Result:
        return result_of("") if call.name in TOOLS else called(self, (), call)

    def state(self) -> dict[str, Json]:
        return {}


class WebSession(SilentSession):
    """A live session. Its results are the web's, so only the answer is ever judged anew."""

    def __init__(self, engine: Engine, bounds: Bounds, show_snippet: bool):
        self._tools = WebSearchAPI(engine, bounds, show_snippet)

    def call(self, call: Call) -> Result:
        return called(self._tools, TOOLS, call)


def as_text(html: str, mode: str) -> str:
    """A page as it is ("raw"), as Markdown, or its bare text ("truncate"), by the packages the official tool uses."""
    if mode == "raw":
        return html
    if mode == "markdown":
        return package("html2text", "html2text").HTML2Text().handle(html)
    soup = package("bs4", "beautifulsoup4").BeautifulSoup(html, "html.parser")
    for element in soup(["script", "style"]):
        element.extract()
    return soup.get_text(separator="\n", strip=True)


def package(module: str, name: str) -> Any:
    """Raises DependencyError."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise DependencyError("package", f"{name} is not installed", 'pip install "seal-coevolve[web]"') from None
