"""The diagnosis of one rollout: every user turn gets its labels, exactly one of them primary."""

from collections.abc import Sequence
from dataclasses import replace

from seal.core.labels import DEFAULT_PRIORITY, Label
from seal.core.types import Diagnosis, Result, Rollout, Step, Task, Verdict
from seal.diagnose import label_rules as rules
from seal.diagnose.primary_label import Finding, labels_of, parse_priority
from seal.diagnose.root_cause import Alignment
from seal.diagnose.trace import Trace
from seal.diagnose.turn_evidence import Goal, TurnEvidence, align, attempts_of, facts_by_place, garbled_of
from seal.diagnose.without_gold import explain_graded
from seal.env.base import Environment

INHERITED, LATENT, NOT_REACHED, RECOVERED = "inherited", "latent", "not_reached", "recovered"
LATENT_CONFIDENCE = 0.8


def diagnose(
    env: Environment,
    task: Task,
    rollout: Rollout,
    verdicts: Sequence[Verdict],
    priority: Sequence[str] | str = DEFAULT_PRIORITY,
) -> list[Diagnosis]:
    """Labels of every user turn of `task`, in order of turns, the primary one of a turn first. Deterministic.

    Only a failing rollout is re-executed, and of it only what deciding root or consequence takes.
    """
    order = parse_priority(priority) if isinstance(priority, str) else priority
    return Diagnoser(env, task, rollout, verdicts).run(order)


class Diagnoser:
    """The working state of one diagnosis."""

    def __init__(self, env: Environment, task: Task, rollout: Rollout, verdicts: Sequence[Verdict]):
        self._env, self._task, self._rollout = env, task, rollout
        self._verdicts = {verdict.turn: verdict for verdict in verdicts}
        n = len(task.turns)
        self._steps: list[list[Step]] = [[] for _ in range(n)]
        for step in rollout.steps:
            self._steps[step.turn].append(step)
        self._calls = rollout.calls_by_turn(n)
        self._results: list[list[Result]] = [[r for step in steps for r in step.results] for steps in self._steps]
        self._stop_turn = stop_turn(rollout, n)
        self._alignment = Alignment(env, task, self._calls, self._results)
        self._findings: list[list[Finding]] = []
        self._source: dict[int, int] = {}  # failing turn -> the earlier turn it follows from

    def run(self, priority: Sequence[Label]) -> list[Diagnosis]:
        for turn in range(len(self._task.turns)):
            self._findings.append(self._turn(turn))
        rows = []
        for turn, findings in enumerate(self._findings):
            trust = self._verdicts[turn].confidence if turn in self._verdicts else 1.0  # no surer than the verdict
            rows += labels_of(turn, findings, priority, self._source.get(turn), trust)
        return rows

    def evidence(self, turn: int) -> TurnEvidence | None:
        """What the rules look at to explain a failing turn that is no consequence: its work, on the gold state before
        it. None for a turn without a verdict."""
        verdict = self._verdicts.get(turn)
        if verdict is None:
            return None
        own = self._alignment.own(turn)
        right = self._alignment.judge(turn, own) if turn else (True, True)
        if all(right):  # right on the gold state, and no earlier turn to blame: trust the verdict
            right = verdict.state_ok, verdict.response_ok
        return self._evidence(turn, own, *right)

    def _stop(self, turn: int) -> str:
        return self._rollout.stop_reason if turn == self._stop_turn != -1 else ""

    def _turn(self, turn: int) -> list[Finding]:
        verdict = self._verdicts.get(turn)
        stop = self._stop(turn)
        if turn > self._stop_turn != -1:
            return self._not_reached(turn)
        if stop == "env_error":
            return [Finding(Label.ENV_ERROR, step=self._last_step(turn))]
        if verdict is None:
            return [Finding(Label.CHECKER_ERROR, "no_verdict")]
        if "graded" in verdict.evidence and (not self._task.turns[turn].gold or "checker_error" in verdict.evidence):
            docs = {doc.name: doc for doc in self._env.docs(self._task, turn)}
            return explain_graded(verdict, self._steps[turn], docs, stop)
        if verdict.valid:
            return self._valid(turn, stop)
        findings = self._failing(turn, verdict, stop)
        if self._task.known_bad and turn not in self._source:
            findings = [Finding(Label.GOLD_ERROR, evidence={"known_bad": self._task.known_bad}), *findings]
        return findings

    def _valid(self, turn: int, stop: str) -> list[Finding]:
        findings: list[Finding] = []
        acts = self._calls[turn] or any(step.errors for step in self._steps[turn])
        if not self._task.turns[turn].gold and acts:
            findings = rules.acted_where_none_was_due(self._evidence(turn, None, True, True))
        if stop and turn < len(self._task.turns) - 1:  # in the last turn nothing was lost by it
            findings.append(Finding(Label.BUDGET_EXHAUSTED, stop, step=self._last_step(turn)))
        if findings:
            return findings
        if not self._task.turns[turn].gold:
            return [Finding(Label.CORRECT_ABSTENTION)]
        erred = any(step.errors or any(r.error_kind for r in step.results) for step in self._steps[turn])
        return [Finding(Label.PASS, RECOVERED if erred else "")]

    def _failing(self, turn: int, verdict: Verdict, stop: str) -> list[Finding]:
        if turn and self._alignment.work_is_right(turn):
            source = self._root_before(turn)
            if source >= 0 and stop and turn < len(self._task.turns) - 1:
                return [Finding(Label.BUDGET_EXHAUSTED, stop, step=self._last_step(turn))]
            if source >= 0:
                self._source[turn] = source
                label = Label.RESPONSE_MISMATCH if verdict.state_ok else Label.STATE_MISMATCH
                return [Finding(label, INHERITED)]
        return rules.explain(self.evidence(turn))

    def _root_before(self, turn: int) -> int:
        """The turn that `turn` follows from: the last root failure, or else the latent one, which is labelled here."""
        roots = [k for k in range(turn) if k not in self._source and self._is_failure(k)]
        failed = [k for k in roots if not self._verdicts[k].valid]
        if failed:
            return failed[-1]
        source = self._alignment.latent_root(turn)
        if source >= 0 and source not in roots:
            evidence = self._evidence(source, self._alignment.own(source), False, False)
            found, until = [f for f in rules.explain(evidence) if f.detail != rules.SYMPTOM], {"latent_until": turn}
            self._findings[source] = [replace(f, confidence=LATENT_CONFIDENCE, evidence=until) for f in found]
        return source

    def _is_failure(self, turn: int) -> bool:
        return any(f.label not in (Label.PASS, Label.CORRECT_ABSTENTION) for f in self._findings[turn])

    def _not_reached(self, turn: int) -> list[Finding]:
        self._source[turn] = self._stop_turn
        of_policy = self._rollout.stop_reason != "env_error"
        return [Finding(Label.BUDGET_EXHAUSTED if of_policy else Label.ENV_ERROR, NOT_REACHED)]

    def _last_step(self, turn: int) -> int:
        return self._steps[turn][-1].step if self._steps[turn] else -1

    def _evidence(self, turn: int, own: Trace | None, state_ok: bool, response_ok: bool) -> TurnEvidence:
        """The evidence of a turn; with `own` its results are those on the gold state: nothing inherited counts."""
        task, env, steps, stop = self._task, self._env, self._steps[turn], self._stop(turn)
        gold = self._alignment.gold(turn) if own else None
        docs = {doc.name: doc for doc in env.docs(task, turn)}
        messages = [task.turns[k].message for k in range(turn + 1)]
        shown = [result.raw for k in range(turn) for result in self._results[k]]
        arguments = [str(value) for k in range(turn) for call in self._calls[k] for value in call.arguments.values()]
        now = [result.raw for result in (*self._results[turn], *(gold.results if gold else ()))]
        goals = ()
        if gold:
            rows = zip(task.turns[turn].gold, gold.results, gold.wrote, strict=True)
            goals = tuple(Goal(call, result.raw, wrote) for call, result, wrote in rows)
        tools = sorted({goal.call.name for goal in goals})
        evidence = TurnEvidence(
            turn=turn,
            goals=goals,
            attempts=tuple(attempts_of(steps, own.results, own.wrote) if own else attempts_of(steps)),
            garbled=tuple(garbled_of(steps, stop)),
            docs=docs,
            known=frozenset(docs) | {doc.name for doc in env.docs(task, len(task.turns) - 1)},
            facts=facts_by_place(env.facts(tools)),
            state_ok=state_ok,
            response_ok=response_ok,
            user_text="\n".join(messages),
            earlier_text="\n".join((*messages[:-1], *shown, *arguments)),
            result_text="\n".join((*shown, *now)),
            last_step=self._last_step(turn),
            stop=stop,
        )
        return align(evidence)


def stop_turn(rollout: Rollout, n_turns: int) -> int:
    """The turn an unfinished rollout ended in; -1 for a finished one."""
    if rollout.stop_reason == "finished":
        return -1
    if not rollout.steps:
        return 0
    last = rollout.steps[-1]
    handed_back = not last.calls and not last.errors and rollout.stop_reason != "turn_token_limit"
    return min(last.turn + handed_back, n_turns - 1)
