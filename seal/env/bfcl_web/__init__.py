"""BFCL V4 web search: 100 questions whose answers lie several pages apart, with and without snippets.

Playing needs a key of the search service in SERPAPI_API_KEY, and the open web. Verifying and diagnosing need neither:
`open` gives a session that never asks anyone, `open_live` the live one (see seal.env.base).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from urllib.parse import urlsplit

from seal.client.server import read_key
from seal.core.types import Call, Fact, Json, Split, Task, ToolDoc, UserTurn
from seal.env.bfcl.data import doc_of, entry_facts, known_bad
from seal.env.bfcl.package import PACKAGE, lines
from seal.env.bfcl_memory.data import ANSWER_FORMAT, prompts
from seal.env.bfcl_web.engine import SERVICE, Engine
from seal.env.bfcl_web.fetch import Bounds
from seal.env.bfcl_web.session import TOOLS, SilentSession, WebSession, package
from seal.env.spoken_answers import RESPOND, AnswerEnvironment, AnswerSession

KEY = "SERPAPI_API_KEY"
FILE = "BFCL_v4_web_search.json"
VARIANTS = ("base", "no_snippet")
SOURCES = "sources"  # among `hosts`: those that the benchmark's own notes name


class BfclWebEnv(AnswerEnvironment):
    """The Environment over the installed bfcl_eval package, the search service and the web.

    hosts        that pages may be fetched from, with their subdomains; "sources" stands for those that the benchmark's
                 notes name, "*" for every public host, which is the official setting
    seconds, max_bytes  of one page
    service, local      of tests: where the search service is, and "address:port" that may be asked though not public
    """

    name = "bfcl_web"
    live = True

    def __init__(
        self,
        hosts: Sequence[str] = (SOURCES,),
        seconds: float = 20.0,
        max_bytes: int = 2_000_000,
        service: str = SERVICE,
        local: frozenset[str] = frozenset(),
    ):
        self.version = PACKAGE.version()
        self._hosts, self._seconds, self._max_bytes = tuple(hosts), seconds, max_bytes
        self._service, self._local = service, local
        self._entries = {entry["name"]: entry for entry in lines("multi_turn_func_doc", "web_search.json")}
        self._docs = {name: doc_of(entry, TOOLS[name]) for name, entry in self._entries.items()}

    @cached_property
    def _answers(self) -> dict[str, Json]:
        return {entry["id"]: entry for entry in lines("possible_answer", FILE)}

    def make_tasks(self) -> list[Task]:
        return [self._task(entry, number, v) for v in VARIANTS for number, entry in enumerate(lines(FILE))]

    def _task(self, entry: Json, number: int, variant: str) -> Task:
        question, category = entry["id"], f"web_search_{variant}"
        answers, bad = self._answers[question]["ground_truth"], known_bad(__name__).get(question, "")
        turn = UserTurn(entry["question"][0][0]["content"], (Call(RESPOND, {"content": answers[0]}),))
        state = {"show_snippet": variant == "base", "answers": answers}
        id_, split = question.replace("web_search", category), split_of(number)
        return Task(id_, self.name, category, question, split, (turn,), state, tuple(TOOLS), known_bad=bad)

    def documents(self, task: Task) -> Mapping[str, ToolDoc]:
        return self._docs

    def guidance(self, task: Task) -> tuple[str, ...]:
        """The official system message: how to answer."""
        return (prompts()[ANSWER_FORMAT].strip(),)

    def facts(self, tools: Sequence[str]) -> tuple[Fact, ...]:
        known = (name for name in dict.fromkeys(tools) if name in self._docs)
        return tuple(fact for name in known for fact in entry_facts(self._docs[name], self._entries[name]))

    def open(self, task: Task) -> AnswerSession:
        return AnswerSession(SilentSession(), task.initial_state["answers"])

    def open_live(self, task: Task, seed: int) -> AnswerSession:
        """A live session. Raises DependencyError without a key, or without the packages that read pages."""
        key = read_key(KEY, "export it: the key of an account at serpapi.com")
        for module, name in (("html2text", "html2text"), ("bs4", "beautifulsoup4")):
            package(module, name)
        engine = Engine(key, self._service, self._seconds)
        bounds = Bounds(self.hosts, self._local, self._seconds, self._max_bytes)
        world = WebSession(engine, bounds, task.initial_state["show_snippet"])
        return AnswerSession(world, task.initial_state["answers"])

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The list of hosts, "sources" written out."""
        named = {name: None for name in self._hosts if name != SOURCES}
        if SOURCES in self._hosts:
            noted = [note for entry in self._answers.values() for note in entry["source"]]
            found = {host(note["source"]) for note in noted if isinstance(note, dict)}
            named |= dict.fromkeys(sorted(found - {""}))
        return tuple(named)


def host(url: str) -> str:
    """The host that a URL names, without www; "" for anything else."""
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def split_of(number: int) -> Split:
    """Every other question is test; of the rest every fifth is dev. Both variants of a question share a split."""
    return "test" if number % 2 else "dev" if number % 10 == 8 else "train"
