"""Policies without weights: the gold program, the gold program with seeded faults, and stored texts.

`policy.json`: {"kind": "scripted", "variant": "gold" | "faulty" | "replay", "format": "words", "rate": 0.3,
"faults": [names], "texts": {"<task_id>/<sample>": [[text of step 0, ...] of turn 0, ...]}}. Only kind must be there.
"""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from seal.core.errors import ArtifactError, ParamError
from seal.policy.base import Action, Limits, Observation, Policy
from seal.policy.faults import CALL_FAULTS, TURN_FAULTS, TurnScript, gold_script, with_fault
from seal.tools.parse import format_calls

FORMATS = ("words", "pythonic", "qwen_xml", "llama_json", "openai")
FAULTS = tuple(sorted((*CALL_FAULTS, *TURN_FAULTS)))


class GoldPolicy(Policy):
    """Plays each user turn's gold calls, then hands back."""

    def __init__(self, format: str = "words"):
        self.name, self.format, self.hash = "gold", format, f"scripted:gold:{format}"

    def act(self, observations: Sequence[Observation], temperature: float, limits: Limits) -> list[Action]:
        return [Action(self._text(self._script(o), o.step)) for o in observations]

    def _script(self, o: Observation) -> TurnScript:
        return gold_script(o.task, o.turn)

    def _text(self, script: TurnScript, step: int) -> str:
        output = script[step] if step < len(script) else ()
        return output if isinstance(output, str) else format_calls(output, self.format)


class FaultyPolicy(GoldPolicy):
    """Gold, but each user turn has a fault with probability `rate`, drawn from `kinds`. A function of seed and turn."""

    def __init__(self, rate: float = 0.3, kinds: Sequence[str] = FAULTS, format: str = "words"):
        if not 0 <= rate <= 1:
            raise ParamError("policy.rate", rate, "a probability in [0, 1]")
        if unknown := sorted(set(kinds) - set(FAULTS)):
            raise ParamError("policy.faults", unknown[0], f"known faults: {', '.join(FAULTS)}")
        super().__init__(format)
        self._rate, self._kinds = rate, tuple(kinds)
        self.name, self.hash = "faulty", f"scripted:faulty:{format}:{rate}:{_digest(self._kinds)}"

    def _script(self, o: Observation) -> TurnScript:
        rng = random.Random(f"{o.seed}/{o.turn}")
        if rng.random() >= self._rate:
            return gold_script(o.task, o.turn)
        kinds = list(self._kinds)
        rng.shuffle(kinds)
        scripts = (with_fault(o.task, o.turn, kind, rng) for kind in kinds)
        return next((script for script in scripts if script is not None), gold_script(o.task, o.turn))


class ReplayPolicy(GoldPolicy):
    """Says what was stored for (task, sample), step by step, and hands back where nothing is stored."""

    def __init__(self, texts: Mapping[str, Sequence[Sequence[str]]], format: str = "words"):
        super().__init__(format)
        self._texts = texts
        self.name, self.hash = "replay", f"scripted:replay:{format}:{_digest(texts)}"

    def _script(self, o: Observation) -> TurnScript:
        turns = self._texts.get(f"{o.task.task_id}/{o.sample}", ())
        return tuple(turns[o.turn]) if o.turn < len(turns) else ()


def load_scripted(path: Path) -> GoldPolicy:
    """Open a policy directory of kind scripted. Raises ArtifactError or ParamError for a policy.json that is none."""
    file = path / "policy.json"
    try:
        spec = json.loads(file.read_text())
        variant, format = spec.get("variant", "gold"), spec.get("format", "words")
    except (OSError, ValueError, AttributeError) as error:
        raise ArtifactError("scripted policy", f"{file}: {error}", "write it again with the start stage") from None
    if format not in FORMATS:
        raise ParamError("policy.format", format, f"known formats: {', '.join(FORMATS)}")
    if variant == "gold":
        return GoldPolicy(format)
    if variant == "faulty":
        return FaultyPolicy(spec.get("rate", 0.3), spec.get("faults", FAULTS), format)
    if variant == "replay":
        return ReplayPolicy(spec.get("texts", {}), format)
    raise ParamError("policy.variant", variant, "gold, faulty or replay")


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()
