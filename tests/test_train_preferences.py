"""Preference pairs: what is rejected, what is chosen, where they part; DPO's update against TRL's."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from train_cases import group, judged

from seal.core.types import Step
from seal.settings.train import TrainParams
from seal.train.preferences import pair_batch, preference_pairs
from seal.train.reweight import Factors


def with_tokens(j, ids, mask, turns, prompt=(5, 6)):
    """The rollout with these shown and bare tokens."""
    tokens = replace(
        j.rollout.tokens,
        prompt_ids=prompt,
        completion_ids=ids,
        loss_mask=mask,
        logprobs=(0.0,) * len(ids),
        turn_of_token=turns,
        interface_mask=(0,) * len(ids),
        bare_prompt_ids=prompt,
        bare_completion_ids=ids,
        bare_loss_mask=mask,
    )
    return replace(j, rollout=replace(j.rollout, tokens=tokens))


def ended(j):
    """The rollout with every action ended by the nano tokenizer's end token: TRL adds it where it lacks."""
    t = j.rollout.tokens
    ids = tuple(
        2 if said and not after else i
        for i, said, after in zip(t.completion_ids, t.loss_mask, (*t.loss_mask[1:], 0), strict=True)
    )
    return with_tokens(j, ids, t.loss_mask, t.turn_of_token, t.prompt_ids)


#      action  result  action  user    action
MASK = (1, 1, 0, 1, 1, 0, 1, 1)
TURNS = (0, 0, 0, 0, 0, 1, 1, 1)
RIGHT = with_tokens(judged("right", ["pass", "pass"]), (10, 11, 20, 12, 13, 21, 14, 15), MASK, TURNS)
WRONG = with_tokens(judged("wrong", ["pass", "argument_mismatch"]), (10, 11, 20, 12, 13, 21, 14, 16), MASK, TURNS)
OTHER = with_tokens(judged("other", ["pass", "pass"]), (10, 19, 20, 12, 13, 21, 17, 15), MASK, TURNS)
EARLY = with_tokens(judged("early", ["missing_tool_call", "pass"]), (10, 11, 20, 18, 13, 21, 14, 15), MASK, TURNS)


def test_the_sides_differ_in_the_diagnosed_turn_and_share_all_before_it():
    (pair,) = preference_pairs([OTHER, WRONG, RIGHT])
    assert (pair.chosen.rollout_id, pair.rejected.rollout_id, pair.turn, pair.grafted) == ("right", "wrong", 1, False)
    assert pair.label == "argument_mismatch"
    assert pair.prompt_ids == (5, 6, 10, 11, 20, 12, 13, 21)  # the difference is inside an action: all of it is told
    assert (pair.chosen.ids, pair.rejected.ids) == ((14, 15), (14, 16))


def test_what_both_say_alike_in_the_turn_is_prompt_and_results_carry_no_mask():
    (pair,) = preference_pairs([RIGHT, EARLY])
    assert pair.prompt_ids == (5, 6, 10, 11, 20) and (pair.chosen.ids, pair.rejected.ids) == ((12, 13), (18, 13))
    second = with_tokens(judged("e2", ["missing_tool_call", "pass"]), (19, 11, 20, 18, 13, 21, 14, 15), MASK, TURNS)
    (pair,) = preference_pairs([RIGHT, second])
    assert pair.chosen.mask == (1, 1, 0, 1, 1) and pair.chosen.ids == (10, 11, 20, 12, 13)
    short = pair.until_action()
    assert (short.chosen.ids, short.rejected.ids, short.chosen.mask) == ((10, 11), (19, 11), (1, 1))


def test_without_the_same_words_a_right_turn_is_set_behind_the_wrong_ones_own():
    (pair,) = preference_pairs([OTHER, WRONG])
    assert pair.grafted and pair.prompt_ids == (5, 6, 10, 11, 20, 12, 13, 21)
    assert (pair.chosen.ids, pair.rejected.ids) == ((17, 15), (14, 16))


def test_no_pair_without_a_root_failure_a_success_a_difference_or_a_policy_to_blame():
    assert not preference_pairs([RIGHT, OTHER]) and not preference_pairs([WRONG, EARLY, WRONG][:1])
    undiagnosed = replace(WRONG, diagnoses=())
    consequence = replace(WRONG, diagnoses=tuple(replace(d, root=False) for d in WRONG.diagnoses))
    broken = replace(WRONG, rollout=replace(WRONG.rollout, stop_reason="env_error"))
    same = replace(WRONG, rollout=replace(WRONG.rollout, tokens=RIGHT.rollout.tokens))
    elsewhere = replace(RIGHT, rollout=replace(RIGHT.rollout, task_id="u"))
    for j in (undiagnosed, consequence, broken, same):
        assert not preference_pairs([RIGHT, j])
    assert not preference_pairs([elsewhere, WRONG])
    silent = replace(WRONG, rollout=replace(WRONG.rollout, steps=(Step(0, 0, ""),)))  # never came to its wrong turn
    assert not preference_pairs([RIGHT, silent])


def test_an_evolved_rollouts_turn_is_paired_in_its_bare_form_unless_interface_text_stands_before():
    rejected = judged("x", ["pass", "argument_mismatch"], mode="full", recovery_from=99)
    (pair,) = preference_pairs([judged("y", ["pass", "pass"]), rejected])
    bare = rejected.rollout.tokens
    whole = pair.prompt_ids + pair.rejected.ids
    assert whole == (bare.bare_prompt_ids + bare.bare_completion_ids)[: len(whole)]
    helped = judged("x", ["pass", "argument_mismatch"], mode="full", recovery_from=1)
    assert not preference_pairs([judged("y", ["pass", "pass"]), helped])


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.floats(0, 1))
def test_laws_of_a_batch_of_pairs(n_pass, n_fail, n_early, confidence):
    failed = [judged(f"f{i}", ["pass", "argument_mismatch"], confidence=confidence) for i in range(n_fail)]
    early = [judged(f"e{i}", ["spurious_tool_call", "pass"]) for i in range(n_early)]
    passed = [judged(f"p{i}", ["pass", "pass"]) for i in range(n_pass)]
    all_of_them = [*failed, *passed, *early]
    batch = pair_batch(all_of_them, TrainParams(alpha=0.0), Factors())
    pairs = list(zip(batch.rows[::2], batch.rows[1::2], strict=True))
    # a first turn is served by all whose second fails, a second turn by those that pass
    assert len(pairs) == (n_fail if n_pass else 0) + (n_early if n_pass + n_fail else 0) == batch.divisor
    for chosen, rejected in pairs:
        assert chosen.prompt_ids == rejected.prompt_ids and chosen.completion_ids != rejected.completion_ids
        plus, minus = max(chosen.advantages), min(rejected.advantages)
        assert plus == -minus > 0 and any(chosen.loss_mask) and any(rejected.loss_mask)
        assert all(a == 0 for row in (chosen, rejected) for a, m in zip(row.advantages, row.loss_mask) if not m)
    if pairs:
        assert sum(max(c.advantages) for c, _ in pairs) / len(pairs) == pytest.approx(1.0)
    keys = [(row.rollout_id, row.turn) for row in batch.weights]
    assert len(set(keys)) == len(keys) == 2 * len(all_of_them)


def test_a_sure_label_of_a_strong_failure_weighs_more():
    sure = judged("a", ["spurious_tool_call"], "s")
    unsure = judged("b", ["spurious_tool_call"], "t", confidence=0.0)
    batch = pair_batch([sure, judged("c", ["pass"], "s"), unsure, judged("d", ["pass"], "t")], TrainParams(), Factors())
    weight = {row.rollout_id: row.weight for row in batch.weights}
    assert weight["a"] == 2 * weight["b"] > 0


def small_nano():
    torch = pytest.importorskip("torch")
    from seal.policy.nano import NanoPolicy, nano_config
    from seal.policy.nano_model import NanoForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return NanoPolicy(NanoForCausalLM(nano_config(layers=1, width=32)).eval())


def exported(root, rollouts, *words, condition="within_group"):
    """What the command writes of a round of small_nano, which collected these `rollouts` and trains so."""
    from seal.cli import main
    from seal.settings.params import load_params
    from seal.settings.play import EvaluateParams
    from seal.settings.typed import plain
    from seal.store.judged import write_judged
    from seal.workspace.params_file import add_round, resolve

    start = {"env": "shop", "recipe": 1, "policy": {"kind": "nano"}, "evaluate": plain(EvaluateParams())}
    (root / "params.yaml").write_text(json.dumps({"envs": {"shop": {}}, "starts": {"r0": start}}))
    params = load_params(root / "params.yaml")
    add_round(root / "params.yaml", "r1", resolve(params, "r0", {"train": {"condition": condition}}))
    small_nano().save(root / "data/rounds/r0/policy")
    for stage in ("collect", "verify", "diagnose"):
        write_judged(root / "data/rounds/r1" / stage, rollouts, "r1", "collect")
    file = root / "preferences.jsonl"
    assert main(["export", "preferences", "--out", str(file), "--root", str(root), *words]) == 0
    return file


def test_the_file_trains_what_the_policy_says_alone_unless_whole_turns_are_asked_for(tmp_path):
    second = with_tokens(judged("e2", ["missing_tool_call", "pass"]), (19, 11, 20, 18, 13, 21, 14, 15), MASK, TURNS)
    tokenizer = small_nano().tokenizer
    for words, chosen, rejected in (
        ((), (10, 11), (19, 11)),
        (("--until", "turn"), (10, 11, 20, 12, 13), (19, 11, 20, 18, 13)),  # 20: what a tool said
    ):
        (row,) = map(json.loads, exported(tmp_path, [RIGHT, second], *words).read_text().splitlines())
        assert tuple(tokenizer(row["chosen"])["input_ids"]) == chosen
        assert tuple(tokenizer(row["rejected"])["input_ids"]) == rejected


@pytest.mark.parametrize("condition", ["within_group", "stripped", "as_collected"])
def test_the_file_has_the_prompts_that_the_round_trains_under(condition, tmp_path):
    failed, passed = (judged(label, ["pass", label], mode="full") for label in ("argument_mismatch", "pass"))
    (row,) = map(json.loads, exported(tmp_path, [failed, passed], condition=condition).read_text().splitlines())
    tokens = failed.rollout.tokens
    prompt = tokens.prompt_ids if condition == "as_collected" else tokens.bare_prompt_ids
    assert tokens.prompt_ids != tokens.bare_prompt_ids
    assert tuple(small_nano().tokenizer(row["prompt"])["input_ids"])[: len(prompt)] == prompt


@pytest.mark.slow
def test_the_update_is_trls_and_its_trainer_takes_what_is_exported(tmp_path):
    pytest.importorskip("torch")
    from datasets import load_dataset
    from trl import DPOConfig, DPOTrainer

    from seal.policy.optim import adamw
    from seal.train.dpo import train
    from seal.train.optimise import Steps, UpdatePlan

    rollouts = [ended(j) for j in (*group("a", 3, 5), *group("b", 2, 2), *group("c", 4, 0))]
    pairs = [pair.until_action() for pair in preference_pairs(rollouts)]
    file = exported(tmp_path, rollouts)
    assert len(file.read_text().splitlines()) == len(pairs) == 7

    policy = small_nano()
    arguments = DPOConfig(
        output_dir=str(tmp_path / "trl"),
        per_device_train_batch_size=7,
        max_steps=3,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        beta=0.3,
        max_length=None,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
        weight_decay=0.0,
    )
    dataset = load_dataset("json", data_files=str(file), split="train", cache_dir=str(tmp_path / "cache"))
    reference = small_nano().model
    trainer = DPOTrainer(
        policy.model, reference, args=arguments, train_dataset=dataset, processing_class=policy.tokenizer
    )
    trained = trainer.train_dataset[0]
    assert tuple(trained["prompt_ids"]) == pairs[0].prompt_ids  # token for token
    assert tuple(trained["chosen_ids"]) == pairs[0].chosen.ids
    trainer.train()
    theirs = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert theirs[0] == pytest.approx(0.6931, abs=1e-3) and theirs[-1] < theirs[0]

    batch = pair_batch(rollouts, TrainParams(weights="none"), Factors())
    ours = small_nano()
    losses = {}
    params = TrainParams(algorithm="dpo", steps=3, lr=1e-2, minibatches=1, dpo_beta=0.3, schedule="constant")
    train(ours, UpdatePlan(params, 16), Steps(lambda _: batch, losses.__setitem__), adamw(ours.model, 1e-2))
    assert [losses[i]["loss"] for i in range(3)] == pytest.approx(theirs, abs=2e-3)
