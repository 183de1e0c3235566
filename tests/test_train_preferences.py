"""Preference pairs: what is rejected, what is chosen, where they part; DPO's update against TRL's."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from train_cases import group, judged

from seal.core.types import Step
from seal.train.preferences import pair_batch, preference_pairs, until_action
from seal.train.reweight import Factors, WeightParams


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
    assert (pair.chosen_id, pair.rejected_id, pair.turn, pair.grafted) == ("right", "wrong", 1, False)
    assert pair.label == "argument_mismatch"
    assert pair.prompt_ids == (5, 6, 10, 11, 20, 12, 13, 21)  # the difference is inside an action: all of it is told
    assert (pair.chosen_ids, pair.rejected_ids) == ((14, 15), (14, 16))


def test_what_both_say_alike_in_the_turn_is_prompt_and_results_carry_no_mask():
    (pair,) = preference_pairs([RIGHT, EARLY])
    assert pair.prompt_ids == (5, 6, 10, 11, 20) and (pair.chosen_ids, pair.rejected_ids) == ((12, 13), (18, 13))
    second = with_tokens(judged("e2", ["missing_tool_call", "pass"]), (19, 11, 20, 18, 13, 21, 14, 15), MASK, TURNS)
    (pair,) = preference_pairs([RIGHT, second])
    assert pair.chosen_mask == (1, 1, 0, 1, 1) and pair.chosen_ids == (10, 11, 20, 12, 13)
    short = until_action(pair)
    assert (short.chosen_ids, short.rejected_ids, short.chosen_mask) == ((10, 11), (19, 11), (1, 1))


def test_without_the_same_words_a_right_turn_is_set_behind_the_wrong_ones_own():
    (pair,) = preference_pairs([OTHER, WRONG])
    assert pair.grafted and pair.prompt_ids == (5, 6, 10, 11, 20, 12, 13, 21)
    assert (pair.chosen_ids, pair.rejected_ids) == ((17, 15), (14, 16))


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
    whole = pair.prompt_ids + pair.rejected_ids
    assert whole == (bare.bare_prompt_ids + bare.bare_completion_ids)[: len(whole)]
    helped = judged("x", ["pass", "argument_mismatch"], mode="full", recovery_from=1)
    assert not preference_pairs([judged("y", ["pass", "pass"]), helped])


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.floats(0, 1))
def test_laws_of_a_batch_of_pairs(n_pass, n_fail, n_early, confidence):
    failed = [judged(f"f{i}", ["pass", "argument_mismatch"], confidence=confidence) for i in range(n_fail)]
    early = [judged(f"e{i}", ["spurious_tool_call", "pass"]) for i in range(n_early)]
    passed = [judged(f"p{i}", ["pass", "pass"]) for i in range(n_pass)]
    all_of_them = [*failed, *passed, *early]
    batch = pair_batch(all_of_them, WeightParams(alpha=0.0), Factors())
    pairs = list(zip(batch.rows[::2], batch.rows[1::2], strict=True))
    # a first turn is served by all whose second fails, a second turn by those that pass
    assert len(pairs) == (n_fail if n_pass else 0) + (n_early if n_pass + n_fail else 0) == batch.n_tokens
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
    batch = pair_batch(
        [sure, judged("c", ["pass"], "s"), unsure, judged("d", ["pass"], "t")], WeightParams(), Factors()
    )
    weight = {row.rollout_id: row.weight for row in batch.weights}
    assert weight["a"] == 2 * weight["b"] > 0


@pytest.mark.slow
def test_the_update_is_trls_and_its_trainer_takes_what_is_exported(tmp_path):
    torch = pytest.importorskip("torch")
    from datasets import load_dataset
    from trl import DPOConfig, DPOTrainer

    from seal.commands.export_preferences import text_row
    from seal.policy.nano import NanoPolicy, nano_config
    from seal.policy.nano_model import NanoForCausalLM
    from seal.train.dpo import train
    from seal.train.plain import adamw
    from seal.train.settings import OptimSettings

    def fresh():
        torch.manual_seed(0)
        return NanoPolicy(NanoForCausalLM(nano_config(layers=1, width=32)).eval())

    torch.set_num_threads(1)
    rollouts = [ended(j) for j in (*group("a", 3, 5), *group("b", 2, 2), *group("c", 4, 0))]
    pairs = [until_action(pair) for pair in preference_pairs(rollouts)]
    lines = [json.dumps(text_row(pair, fresh().tokenizer)) for pair in pairs]
    assert len(lines) == 7 and "null" not in lines
    file = tmp_path / "preferences.jsonl"
    file.write_text("\n".join(lines))

    policy = fresh()
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
    reference = fresh().model
    trainer = DPOTrainer(
        policy.model, reference, args=arguments, train_dataset=dataset, processing_class=policy.tokenizer
    )
    trained = trainer.train_dataset[0]
    assert tuple(trained["prompt_ids"]) == pairs[0].prompt_ids  # token for token
    assert tuple(trained["chosen_ids"]) == pairs[0].chosen_ids
    trainer.train()
    theirs = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert theirs[0] == pytest.approx(0.6931, abs=1e-3) and theirs[-1] < theirs[0]

    batch = pair_batch(rollouts, WeightParams("none"), Factors())
    ours = fresh()
    losses = {}
    settings = OptimSettings(steps=3, rows=16, lr=1e-2, minibatches=1, dpo_beta=0.3)
    optimizer = adamw(ours.model, 1e-2)
    train(ours.model, ours.tokenizer, lambda _: batch, settings, optimizer, losses.__setitem__)
    assert [losses[i]["loss"] for i in range(3)] == pytest.approx(theirs, abs=2e-3)
