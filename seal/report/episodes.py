"""Episodes as HTML: what the user asked, what the policy did, what came back, what the verdict was."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from seal.core.judged import Judged
from seal.core.labels import FAILURES
from seal.core.types import Call, Diagnosis, Task
from seal.report.stored_rollouts import Turn, turns_of
from seal.tools.parse import format_calls


@dataclass(frozen=True, slots=True)
class Episode:
    """One judged rollout with its task."""

    task: Task
    judged: Judged

    @property
    def label(self) -> str:
        """The label of the first turn that failed by itself; "" for none."""
        roots = [d for d in self.judged.diagnoses if d.primary and d.root and d.label in FAILURES]
        return str(min(roots, key=lambda d: d.turn).label) if roots else ""


def examples(
    before: Sequence[Episode], after: Sequence[Episode], labels: int = 4
) -> list[tuple[str, Episode, Episode]]:
    """For the most frequent labels of `before`: (label, an episode that fails so, the same task in `after`).

    Tasks that `after` solves come first, short episodes before long ones.
    """
    later = {episode.task.task_id: episode for episode in after}
    failing = [e for e in before if not e.judged.success and e.label and e.task.task_id in later]
    counts = Counter(e.label for e in failing)

    def rank(e: Episode) -> tuple[bool, int, str]:
        return not later[e.task.task_id].judged.success, len(e.judged.rollout.steps), e.task.task_id

    found = []
    for label, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:labels]:
        candidates = [e for e in failing if e.label == label]
        found.append((label, best := min(candidates, key=rank), later[best.task.task_id]))
    return found


def episode_html(episode: Episode) -> str:
    """All user turns of one episode."""
    task, j = episode.task, episode.judged
    return "".join(map(_turn, turns_of(len(task.turns), task, j.rollout.steps, j.verdicts, j.diagnoses)))


def _turn(turn: Turn) -> str:
    lines = [f'<div class="user">{escape(_cut(turn.user.message))}</div>']
    for step in turn.steps:
        said = escape(_cut(step.text)) or '<span class="soft">(nothing)</span>'
        lines.append(f'<div class="step mono">{said}</div>')
        lines += [_result(result.raw, result.error_kind) for result in step.results]
        lines += [_result(error.message or error.kind, error.kind) for error in step.errors]
    if not turn.steps:
        lines.append('<div class="step soft">(never reached)</div>')
    valid = bool(turn.verdict and turn.verdict.valid)
    lines.append(_labels(turn.diagnoses, valid))
    if not valid:
        lines.append(f'<div class="small soft">expected: <code>{escape(_expected(turn.user.gold))}</code></div>')
    return f'<div class="turn {"good" if valid else "bad"}">{"".join(lines)}</div>'


def _result(text: str, error: str) -> str:
    return f'<div class="step mono {"error" if error else "result"}">&rarr; {escape(_cut(text))}</div>'


def _labels(diagnoses: Sequence[Diagnosis], valid: bool) -> str:
    tags = []
    for d in diagnoses:
        place = ".".join(part for part in (d.tool, d.parameter) if part)
        text = " ".join(part for part in (str(d.label), d.detail, place, "" if d.root else "(follows)") if part)
        kind = ("good" if valid else "bad") if d.primary else ""
        tags.append(f'<span class="tag {kind}">{escape(text)}</span>')
    return f"<div>{''.join(tags)}</div>" if tags else ""


def _expected(gold: Sequence[Call]) -> str:
    return format_calls(gold, "pythonic") if gold else "no call"


def _cut(text: str, most: int = 600) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most} more characters)"
