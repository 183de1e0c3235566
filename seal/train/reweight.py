"""Diagnosis weights: how strongly each user turn of a rollout is rewarded or punished. The sign stays the outcome's.

A label's strength is rho(z) = clip(utility(z)) * factor(z), where the factor closes the loop on the policy side:

    target(z) = 1 + alpha * prevalence(z) * stagnation(z) * confidence(z),   factor <- (1 - ema) factor + ema target

    prevalence   share of failing root turns that carry z
    stagnation   1 - success rate over the groups (tasks) that show z. Such groups hold successes too, so it falls from
                 1 as they get solved; the rate over failing rollouts alone would be 0 whatever happens.
    confidence   mean confidence of the labels, times min(1, count / 32)

All three are read from the bare rollouts where there are any: what the deployed policy fails at. Only failures have a
factor; those of success labels stay 1. Since the utility is clipped before the factor, a label at the cap still moves.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from seal.core.errors import ArtifactError
from seal.core.judged import Judged
from seal.core.labels import DEFAULT_UTILITY, FAILURES, Label
from seal.settings.train import TrainParams

FULL_SUPPORT = 32  # labels seen before a count alone is trusted in full, as in the published code
DROPPED, ZERO_VARIANCE, NOT_THE_POLICY = "dropped_negative", "zero_variance", "not_the_policy"
AFTER_FAILURE, SPURIOUS_IN_PASS = "after_failure", "spurious_in_pass"


@dataclass(frozen=True, slots=True)
class TurnWeight:
    """One row of the `weights` table. advantage * weight is what every trained token of the turn gets.

    `utility` is the strength before confidence and normalisation, `tokens` how many tokens of the turn can be trained.
    """

    rollout_id: str
    turn: int
    advantage: float
    utility: float
    weight: float
    reason: str
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Factors:
    """The state of the closed loop: label -> smoothed factor (1 where absent), and how many updates made it."""

    factor: Mapping[str, float] = field(default_factory=dict)
    updates: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, "updates": self.updates, "factor": dict(sorted(self.factor.items()))}

    @staticmethod
    def of_json(data: Mapping[str, Any] | None) -> "Factors":
        if data and data.get("version") != 1:
            remedy = "it was written by a newer version: update, or run the round's train stage again"
            raise ArtifactError("reweight.json", f"version {data.get('version')}", remedy)
        return Factors(dict(data["factor"]), int(data["updates"])) if data else Factors()


def root_failures(judged: Judged) -> dict[int, tuple[str, float]]:
    """Turn -> (label, confidence) of the failing turns that follow from no earlier failure."""
    return {
        d.turn: (str(d.label), d.confidence) for d in judged.diagnoses if d.primary and d.root and d.label in FAILURES
    }


def update_factors(state: Factors, judged: Sequence[Judged], params: TrainParams) -> Factors:
    """One step of the closed loop from one batch of rollouts. Pure."""
    usable = [j for j in judged if j.usable]
    usable = [j for j in usable if j.bare] or usable
    success: dict[str, list[bool]] = defaultdict(list)
    confidences: dict[str, list[float]] = defaultdict(list)
    shown_in: dict[str, set[str]] = defaultdict(set)
    for j in usable:
        success[j.rollout.task_id].append(j.success)
        for label, confidence in root_failures(j).values():
            confidences[label].append(confidence)
            shown_in[label].add(j.rollout.task_id)
    n_roots = sum(map(len, confidences.values()))
    factor = {}
    for label in sorted({*confidences, *state.factor}):
        seen = confidences.get(label, [])
        outcomes = [outcome for task in sorted(shown_in.get(label, ())) for outcome in success[task]]
        target = 1.0
        if seen:
            stagnation = 1 - sum(outcomes) / len(outcomes)
            confidence = sum(seen) / len(seen) * min(1.0, len(seen) / FULL_SUPPORT)
            target += params.alpha * len(seen) / n_roots * stagnation * confidence
        factor[label] = (1 - params.ema) * state.factor.get(label, 1.0) + params.ema * target
    return Factors(factor, state.updates + 1)


class _Reason(NamedTuple):
    """Why a turn weighs what it does: the name of the reason, its strength, and how sure it is."""

    name: str
    strength: float
    confidence: float = 1.0


def _utility(label: str, params: TrainParams) -> float:
    return params.utility.get(label, DEFAULT_UTILITY.get(label, 1.0))


def _clipped(value: float, params: TrainParams) -> float:
    low, high = params.clip
    return min(max(value, low), high)


def strength(label: str, params: TrainParams, state: Factors) -> float:
    """rho(label): the clipped utility times the label's factor."""
    return _clipped(_utility(label, params), params) * state.factor.get(label, 1.0)


def turn_weights(
    judged: Judged,
    advantage: float | Mapping[int, float],
    tokens: Mapping[int, int],
    params: TrainParams,
    state: Factors,
) -> list[TurnWeight]:
    """Raw weights of one rollout, a row for each turn of `tokens` (turn -> tokens that can be trained).

    By `params.weights`:

    turn        a failed rollout: its failing root turns get rho(label), its other turns the lower clip, or all get 1
                where no root turn was found among them. A passing rollout: rho(pass), at least as much for a right
                abstention and a recovery from an error; a turn with a spurious call is masked, however sure the label.
                The label's confidence scales every other weight towards 1.
    trajectory  the paper's: mean over the diagnosed turns of utility(label) * factor(label), clipped only then, for all
                turns; the mean confidence of the verdicts (1 where gold decides) scales it towards 1.
    none        1.

    `advantage`: of the rollout, or of each turn (turns without one get 0). With one a turn, the turns that a failed
    rollout served are weighted like those of a passing one.
    """
    by_turn = advantage if isinstance(advantage, Mapping) else dict.fromkeys(tokens, advantage)
    if params.weights == "turn":
        served = [t for t, passed in enumerate(judged.passed) if passed and t in tokens] if by_turn is advantage else []
        if judged.success:
            reasons = _passing(judged, tokens, params, state)
        else:
            reasons = _failing(judged, tokens, params, state) | _passing(judged, served, params, state)
    elif params.weights == "trajectory":
        labels = [str(d.label) for d in judged.diagnoses if d.primary]
        rhos = [_utility(label, params) * state.factor.get(label, 1.0) for label in labels]
        mean = _clipped(sum(rhos) / len(rhos), params) if rhos else 1.0
        reasons = dict.fromkeys(tokens, _Reason("trajectory", mean, _mean_confidence(judged)))
    else:
        reasons = dict.fromkeys(tokens, _Reason("none", 1.0))
    rows = []
    for turn, count in sorted(tokens.items()):
        name, rho, confidence = reasons[turn]
        weight = 0.0 if name == SPURIOUS_IN_PASS else 1 + confidence * (rho - 1)
        rows.append(TurnWeight(judged.rollout.rollout_id, turn, by_turn.get(turn, 0.0), rho, weight, name, count))
    return rows


def _failing(judged: Judged, turns: Iterable[int], params: TrainParams, state: Factors) -> dict[int, _Reason]:
    roots = root_failures(judged)
    found = any(turn in roots for turn in turns)
    reasons = {}
    for turn in turns:
        primary = judged.primary(turn)
        if turn in roots:
            label, confidence = roots[turn]
            reasons[turn] = _Reason("root_failure", strength(label, params, state), confidence)
        elif not found:
            reasons[turn] = _Reason("undiagnosed", 1.0)
        else:
            name = "innocent" if judged.valid(turn) else "consequence"
            reasons[turn] = _Reason(name, params.clip[0], primary.confidence if primary else 1.0)
    return reasons


def _passing(judged: Judged, turns: Iterable[int], params: TrainParams, state: Factors) -> dict[int, _Reason]:
    of_pass = strength(Label.PASS, params, state)
    reasons = {}
    for turn in turns:
        labels = {str(d.label): d.confidence for d in judged.diagnoses if d.turn == turn}
        primary = judged.primary(turn)
        confidence = primary.confidence if primary else 1.0
        if Label.SPURIOUS_TOOL_CALL in labels:
            reasons[turn] = _Reason(SPURIOUS_IN_PASS, 0.0, labels[Label.SPURIOUS_TOOL_CALL])
        elif Label.CORRECT_ABSTENTION in labels:
            rho = max(of_pass, strength(Label.CORRECT_ABSTENTION, params, state))
            reasons[turn] = _Reason("abstained", rho, labels[Label.CORRECT_ABSTENTION])
        elif judged.had_error(turn):
            rho = max(of_pass, strength(Label.RECOVERY_FAILURE, params, state))
            reasons[turn] = _Reason("recovered", rho, confidence)
        else:
            reasons[turn] = _Reason("pass", of_pass, confidence)
    return reasons


def _mean_confidence(judged: Judged) -> float:
    """Of a rollout's verdicts."""
    return sum(verdict.confidence for verdict in judged.verdicts) / len(judged.verdicts) if judged.verdicts else 1.0


def masked(rows: Iterable[TurnWeight], reason: str) -> list[TurnWeight]:
    """The rows with weight 0 and the reason why."""
    return [replace(row, weight=0.0, reason=reason) for row in rows]


def normalised(rows: Sequence[TurnWeight], params: TrainParams) -> list[TurnWeight]:
    """The rows scaled so that the unmasked weights average 1 over trained tokens; masked rows stay 0.

    As they are without tokens, and where `params` ask for no normalisation or no weights.
    """
    tokens = sum(row.tokens for row in rows if row.weight)
    total = sum(row.tokens * row.weight for row in rows)
    if not total or not params.normalise or params.weights == "none":
        return list(rows)
    return [replace(row, weight=row.weight * tokens / total) for row in rows]
