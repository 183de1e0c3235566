"""`seal export preferences`: pairs of one task as the text dataset that trl.DPOTrainer takes."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seal.commands.places import add_root, file_place
from seal.core.errors import ArtifactError, RoundError
from seal.core.types import Json

if TYPE_CHECKING:
    from seal.workspace.lineage import Lineage

GET = "`seal run` plays it, `dvc repro{0}` too; `dvc pull{0}` fetches what was run elsewhere"
HELP = "pairs of one task that differ at the diagnosed turn, for trl.DPOTrainer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rounds", nargs="*", help="rounds whose rollouts are paired (default: all that are diagnosed)")
    parser.add_argument("--out", type=Path, required=True, help="a JSONL file")
    parser.add_argument(
        "--until",
        choices=("action", "turn"),
        default="action",
        help="where both sides end: the first action that differs, or its whole turn, whose tool results a trainer of"
        " text then trains on (default: %(default)s)",
    )
    add_root(parser)


def run(args: argparse.Namespace) -> int:
    from seal.settings.params import load_params
    from seal.store.files import atomic_file
    from seal.train.preferences import preference_pairs
    from seal.workspace.lineage import Lineage

    left_out, written, place = 0, 0, file_place("--out", args.out)
    lineage = Lineage(load_params(args.root / "params.yaml"))
    rounds = _diagnosed(args.root, lineage, args.rounds)
    with atomic_file(place) as part, part.open("w", encoding="utf-8") as out:
        for round_id in rounds:
            entry = lineage.round(round_id)
            tokenizer = _tokenizer(args.root, round_id, entry.parent)
            pairs = preference_pairs(_judged(args.root, round_id), entry.train.condition)
            for pair in (pair.until_action() for pair in pairs) if args.until == "action" else pairs:
                row = text_row(pair, tokenizer)
                left_out, written = left_out + (row is None), written + (row is not None)
                if row:
                    out.write(json.dumps({"round": round_id, **row}, ensure_ascii=False) + "\n")
    print(
        f"{written} pairs in {args.out}", f"; {left_out} left out, whose text has other tokens" * bool(left_out), sep=""
    )
    if not written:
        print("no pair: it takes a task with a turn that one rollout serves and another fails", file=sys.stderr)
    return 0


def text_row(pair: Any, tokenizer: Any) -> dict[str, Json] | None:
    """A row whose texts, tokenised as TRL does, are the very tokens that were played; None where no text is."""
    own = tokenizer("")["input_ids"]  # what the tokenizer puts before any text by itself
    if tuple(own) != pair.prompt_ids[: len(own)]:
        return None
    sides = ((), pair.chosen.ids, pair.rejected.ids)
    prompt, chosen, rejected = texts = [_decoded(tokenizer, (pair.prompt_ids + ids)[len(own) :]) for ids in sides]
    for text, ids in zip(texts, sides, strict=True):
        if not text.startswith(prompt) or tokenizer(text)["input_ids"] != [*pair.prompt_ids, *ids]:
            return None
    return {
        "prompt": prompt,
        "chosen": chosen[len(prompt) :],
        "rejected": rejected[len(prompt) :],
        "task_id": pair.task_id,
        "turn": pair.turn,
        "label": pair.label,
        "confidence": pair.confidence,
        "grafted": pair.grafted,
        "chosen_id": pair.chosen.rollout_id,
        "rejected_id": pair.rejected.rollout_id,
    }


def _decoded(tokenizer: Any, ids: Iterable[int]) -> str:
    return tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)


def _diagnosed(root: Path, lineage: "Lineage", named: Sequence[str]) -> Sequence[str]:
    """The rounds to read: those named, or all that are diagnosed. Raises ArtifactError where the data is not here."""
    from seal.workspace.lineage import diagnosed_rounds

    there = diagnosed_rounds(root, lineage.params.rounds)
    for name in named:
        if lineage.round(name) and name not in there:
            raise ArtifactError("round", f"{name}: not diagnosed here", GET.format(f" diagnose@{name}"))
    if not there:
        raise ArtifactError("rounds", f"none of {root.resolve()} is diagnosed here", GET.format(""))
    return list(dict.fromkeys(named)) or there


def _tokenizer(root: Path, round_id: str, parent: str) -> Any:
    """That of the policy that played the round, its parent's."""
    from seal.policy import load_policy
    from seal.workspace.lineage import path_of

    policy = load_policy(path_of(root, parent, "policy"))
    if policy.tokenizer is None:
        raise RoundError("policy of", round_id, "its policy has no tokens of its own: preferences need nano or hf")
    return policy.tokenizer


def _judged(root: Path, round_id: str) -> list[Any]:
    """The round's collected rollouts, and those of its training where it has any: told where it was not trained."""
    from seal.store.judged import read_judged, read_training
    from seal.workspace.lineage import path_of

    collect, verify, diagnose, train = (path_of(root, round_id, x) for x in ("collect", "verify", "diagnose", "train"))
    if not train.is_dir():
        print(f"{round_id}: its collected rollouts alone, its training is not here", file=sys.stderr)
    return [*read_judged(collect, verify, diagnose), *read_training(train)]
