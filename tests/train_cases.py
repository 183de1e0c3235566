"""Hand-made judged rollouts and a tiny policy, for the tests of the train room."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seal.core.judged import Judged
from seal.core.seeds import RoundKey
from seal.core.types import Call, CallError, Diagnosis, Result, Rollout, Step, Tokens, Verdict
from seal.settings.play import CollectParams
from seal.train.on_policy import OnPolicy

VOCABULARY = 40


def tokens(
    rng: random.Random, actions: Sequence[tuple[int, int]], evolved: bool = False, recovery_from: int = 99
) -> Tokens:
    """Ids of sampled `actions` (turn, how many tokens), with an environment segment between.

    `evolved` adds two ids to the shown prompt and one to every segment from turn `recovery_from` on.
    """

    def ids(n: int) -> list[int]:
        return [rng.randrange(3, VOCABULARY) for _ in range(n)]

    bare_prompt = ids(6)
    shown: list[tuple[int, int, int, int]] = []  # id, sampled, turn, after recovery text
    bare: list[tuple[int, int]] = []
    for place, (turn, n) in enumerate(actions):
        if place:
            segment, extra = ids(2), ids(1) if evolved and turn >= recovery_from else []
            shown += [(i, 0, turn, 0) for i in segment + extra]
            bare += [(i, 0) for i in segment]
        action = ids(n)
        shown += [(i, 1, turn, int(evolved and turn >= recovery_from)) for i in action]
        bare += [(i, 1) for i in action]
    tail = ids(2)
    shown += [(i, 0, actions[-1][0], 0) for i in tail]
    bare += [(i, 0) for i in tail]
    return Tokens(
        prompt_ids=tuple((ids(2) if evolved else []) + bare_prompt),
        completion_ids=tuple(row[0] for row in shown),
        loss_mask=tuple(row[1] for row in shown),
        logprobs=tuple(-1.5 * row[1] for row in shown),
        turn_of_token=tuple(row[2] for row in shown),
        interface_mask=tuple(row[3] for row in shown),
        bare_prompt_ids=tuple(bare_prompt),
        bare_completion_ids=tuple(row[0] for row in bare),
        bare_loss_mask=tuple(row[1] for row in bare),
    )


def step(turn: int, error: str = "") -> Step:
    call = Call("find", {"order": "1"})
    if error == "parse":
        return Step(turn, 0, "find order", errors=(CallError("syntax", "not a call"),))
    return Step(turn, 0, "find order=1", (call,), results=(Result("r", "r", error),))


def judged(
    name: str,
    labels: Sequence[str],
    task: str = "t",
    success: bool | None = None,
    mode: str = "off",
    roots: Sequence[bool] | None = None,
    errors: Sequence[str] = (),
    confidence: float = 1.0,
    lengths: Sequence[int] | None = None,
    recovery_from: int = 99,
    stop: str = "finished",
) -> Judged:
    """A rollout with one primary label and one step a turn. Turns labelled pass or correct_abstention are valid; with
    an error they hold two steps of the same length, of which the first failed."""
    good = ("pass", "correct_abstention")
    valid = [label in good for label in labels]
    success = all(valid) if success is None else success
    rng = random.Random(name)
    lengths, errors = lengths or [3] * len(labels), [*errors, *[""] * (len(labels) - len(errors))]
    steps, actions = [], []
    for turn, error in enumerate(errors):
        for failure in (error, "") if error and valid[turn] else (error,):
            steps.append(step(turn, failure))
            actions.append((turn, lengths[turn]))
    rollout = Rollout(
        rollout_id=name,
        task_id=task,
        sample=0,
        seed=1,
        mode=mode,
        policy_hash="p",
        interface_hash="bare" if mode == "off" else "i",
        steps=tuple(steps),
        stop_reason=stop,
        tokens=tokens(rng, actions, mode != "off", recovery_from),
    )
    diagnoses = tuple(
        Diagnosis(turn, label, primary=True, root=roots[turn] if roots else True, confidence=confidence)
        for turn, label in enumerate(labels)
    )
    verdicts = tuple(Verdict(turn, ok or success, ok or success, ok or success) for turn, ok in enumerate(valid))
    return Judged(rollout, verdicts, diagnoses, success, sum(valid) / len(valid))


def group(
    task: str, n_pass: int, n_fail: int, modes: Sequence[str] = ("off",), lengths: Sequence[int] = (3, 2)
) -> list[Judged]:
    """One group: passing and failing rollouts in turn, their modes cycled."""
    rollouts = []
    for i in range(n_pass + n_fail):
        labels = ("pass", "pass") if i < n_pass else ("pass", "argument_mismatch")
        mode = modes[i % len(modes)]
        rollouts.append(judged(f"{task}-{i}", labels, task, mode=mode, lengths=[n + i % 3 for n in lengths]))
    return rollouts


@dataclass(frozen=True)
class HandMade(OnPolicy):
    """Stands in for play: `make(policy, step, others_than, n)` gives the rollouts."""

    make: Callable[..., list[Judged]] | None = None

    def __call__(self, policy, step, others_than=(), n=0):
        return self.make(policy, step, others_than, n)


def hand_made(make: Callable[..., list[Judged]]) -> HandMade:
    return HandMade(None, None, CollectParams(), (), RoundKey("r1", 1, 0), make)


def tiny_policy(seed: int = 0):
    """A random two-layer Llama with a tokenizer, as the policies with weights expose them."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCABULARY)}, unk_token="w1"))

    class Policy:
        hash = "p"  # whose rollouts are those of `judged`
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="w0", unk_token="w1", eos_token="w2")

        def __init__(self) -> None:
            torch.manual_seed(seed)
            self.model = LlamaForCausalLM(
                LlamaConfig(
                    vocab_size=VOCABULARY,
                    hidden_size=16,
                    intermediate_size=32,
                    num_hidden_layers=2,
                    num_attention_heads=2,
                    num_key_value_heads=2,
                    max_position_embeddings=64,
                    tie_word_embeddings=True,
                )
            ).eval()

    return Policy()
