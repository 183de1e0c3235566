"""Episodes: bookkeeping laws of the token ledger, stop reasons, interface modes, determinism, isolation."""

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.seeds import RoundKey
from seal.core.types import REFUSALS, Call
from seal.env import load_env
from seal.env.shop import SHOP, ShopEnv
from seal.interface import wording
from seal.interface.state import InterfaceState, Item
from seal.interface.view import View
from seal.policy.base import Action, Limits, Policy
from seal.policy.nano import NanoPolicy, nano_config
from seal.policy.nano_model import NanoForCausalLM
from seal.policy.scripted import GoldPolicy
from seal.policy.words import END, WordCodec, build_vocabulary
from seal.rollout.engine import Request, play
from seal.rollout.ledger import Ledger
from seal.rollout.plan import choose_tasks, requests_for
from seal.settings.play import CollectParams
from seal.tools.parse import format_calls
from seal.verify.rollout import success
from seal.verify.turns import verify

ENV = ShopEnv(train=4, dev=1, test=4)
CODEC = WordCodec(build_vocabulary())
CUES = InterfaceState(
    (
        Item("enum", "issue_refund.reason", "docs", "damaged K3 late K7 lost K9 wrong K1", "argument_mismatch", "r1"),
        Item("recover", "invalid_value", "feedback", "see the docs", "recovery_failure", "r1"),
    )
)


class Texts(Policy):
    """A policy with a codec that says given texts in turn, as ids of its codec."""

    name, format, hash, codec = "texts", "words", "texts", CODEC

    def __init__(self, *texts: str):
        self.texts, self.seen = texts, []

    def act(self, observations, temperature, limits):
        actions = []
        for o in observations:
            text = self.texts[min(len(self.seen), len(self.texts) - 1)]
            self.seen.append(list(o.ids))
            ids = tuple(CODEC.encode_action(text))
            actions.append(Action(text, ids, (-0.5,) * len(ids)))
        return actions


def requests(tasks, group_size=1, run_seed=0, interface=InterfaceState(), id="r1", **params):
    collected = CollectParams(**params).model_copy(update={"group_size": group_size})  # of one, too
    return requests_for(tasks, collected, RoundKey(id, 1, run_seed), interface)


def one(policy, task, interface=InterfaceState(), **params):
    (rollout,) = play(ENV, policy, requests([task], interface=interface, item_dropout=0.0, **params), interface)
    return rollout


def tiny() -> NanoPolicy:
    torch.manual_seed(0)
    return NanoPolicy(NanoForCausalLM(nano_config(layers=1, width=32)).eval())


def test_gold_succeeds_on_every_task_and_empty_hands_on_none_but_those_that_ask_for_nothing():
    tasks = ENV.tasks()
    for rollout, task in zip(play(ENV, GoldPolicy("words"), requests(tasks)), tasks):
        verdicts = verify(ENV, task, rollout.calls_by_turn(len(task.turns)))
        assert success(task, verdicts, rollout) and rollout.stop_reason == "finished"
    for rollout, task in zip(play(ENV, Texts("done"), requests(tasks)), tasks):
        assert not success(task, verify(ENV, task, rollout.calls_by_turn(len(task.turns))), rollout)


def test_every_prompt_is_a_prefix_of_the_next():
    policy = Texts("find_order order=100", "done")
    one(policy, ENV.tasks()[0])
    for before, after in zip(policy.seen, policy.seen[1:]):
        assert after[: len(before)] == before


def test_tokens_hold_what_was_sampled_and_nothing_else_is_trainable():
    texts = ("find_order order=100", "track_parcel shipment=1", "done")
    rollout = one(Texts(*texts), ENV.tasks()[0])
    t = rollout.tokens
    sampled = [i for i, m in zip(t.completion_ids, t.loss_mask) if m]
    assert sampled == [i for step in rollout.steps for i in CODEC.encode_action(step.text)]
    assert len(t.completion_ids) == len(t.loss_mask) == len(t.logprobs) == len(t.turn_of_token) == len(t.interface_mask)
    assert all((p != 0) == bool(m) for p, m in zip(t.logprobs, t.loss_mask))
    assert t.completion_ids[-1] == END


def test_off_is_bare_and_full_differs_only_in_what_the_environment_wrote():
    task = next(t for t in ENV.tasks() if "issue_refund" in t.toolset and "issue_refund" not in t.holdout)
    bare = one(Texts("done"), task)
    shown = one(Texts("done"), task, evolved=1, interface=CUES)
    assert bare.tokens.prompt_ids == bare.tokens.bare_prompt_ids == shown.tokens.bare_prompt_ids
    assert shown.tokens.prompt_ids != shown.tokens.bare_prompt_ids
    assert (bare.interface_hash, shown.interface_hash) == ("bare", CUES.hash)
    pick = [
        [i for i, m in zip(ids, mask) if m]
        for ids, mask in (
            (shown.tokens.completion_ids, shown.tokens.loss_mask),
            (shown.tokens.bare_completion_ids, shown.tokens.bare_loss_mask),
        )
    ]
    assert pick[0] == pick[1]


def test_the_stripped_completion_is_what_the_bare_interface_would_have_shown():
    """The same texts, evolved and off: calls that fail in every way, no call at all, and a tool that is revealed."""
    facts = ENV.facts([tool.name for tool in SHOP.tools])
    cues = [cue for fact in facts for write in (wording.note, wording.recovery) if (cue := write(fact))]
    cues += map(wording.recover_any, wording.RECOVERY_TEMPLATES)
    state = InterfaceState(tuple(cue.item() for cue in (*cues, wording.call_format("words"))))
    seen = set()
    for task in (task for task in ENV.tasks() if task.holdout):
        reveal = min(task.holdout.values())
        last = next(turn.gold[-1] for turn in task.turns if turn.gold)  # before what it needs; then with other codes
        wrong = replace(last, arguments={k: "K0" if v[0] == "K" else v for k, v in last.arguments.items()})
        called = [format_calls((call,), "words") for call in (last, wrong)]
        texts = ["find_order order", *called, "done"]
        off, evolved = (one(Texts(*texts), task, evolved=n, interface=state) for n in (0, 1))
        assert (off.mode, evolved.mode) == ("off", "full")
        assert [s.text for s in off.steps] == [s.text for s in evolved.steps]
        assert evolved.tokens.bare_prompt_ids == off.tokens.prompt_ids
        assert evolved.tokens.bare_completion_ids == off.tokens.completion_ids
        assert evolved.tokens.bare_loss_mask == off.tokens.loss_mask
        assert evolved.tokens.completion_ids != off.tokens.completion_ids
        assert [r.raw for s in evolved.steps for r in s.results] == [r.shown for s in off.steps for r in s.results]
        seen |= {result.error_kind for step in evolved.steps for result in step.results if result.shown != result.raw}
        seen |= {error.kind for step in evolved.steps for error in step.errors}
        notes = View(ENV, task, state, "full").revealed(reveal)
        seen |= {"revealed"} if evolved.steps[-1].turn >= reveal and any(doc.notes for doc in notes) else set()
    assert seen >= {"syntax", "invalid_value", "revealed"} and seen & {*REFUSALS}, seen


def test_tokens_sampled_after_a_recovery_text_are_marked():
    task = next(t for t in ENV.tasks() if "issue_refund" in t.toolset and "issue_refund" not in t.holdout)
    order = next(iter(task.initial_state["entities"]["order"]))
    rollout = one(Texts(f"issue_refund order=ORD-{order} reason=K6", "done"), task, evolved=1, interface=CUES)
    result = rollout.steps[0].results[0]
    assert result.raw == "error invalid reason=" and result.shown.startswith(result.raw) and result.shown != result.raw
    first = len(CODEC.encode_action(rollout.steps[0].text))
    marks = [mark for mark, m in zip(rollout.tokens.interface_mask, rollout.tokens.loss_mask) if m]
    assert set(marks[:first]) == {0} and set(marks[first:]) == {1}


def test_stop_reasons_are_data():
    task = ENV.tasks()[0]
    assert one(Texts("find_order order=1"), task).stop_reason == "step_limit"
    assert one(Texts("done"), task).stop_reason == "finished"
    limits = {"long": Limits(4, 512), "full": Limits(4, 20)}
    for limit, reason in (("long", {"turn_token_limit", "step_limit"}), ("full", {"context_overflow"})):
        for rollout in play(ENV, tiny(), requests(ENV.tasks()), limits=limits[limit]):
            assert rollout.stop_reason in reason


def test_same_requests_same_rollouts_whatever_the_batch():
    wanted = requests(ENV.tasks()[:6], 3, 7)
    policy = tiny()
    whole = play(ENV, policy, wanted, limits=Limits(6, 300))
    assert whole == play(ENV, policy, wanted, limits=Limits(6, 300))
    parts = [r for i in range(0, 18, 5) for r in play(ENV, policy, wanted[i : i + 5], limits=Limits(6, 300))]
    assert [r.steps for r in whole] == [r.steps for r in parts]


def test_start_turn_plays_the_gold_prefix_without_training_on_it():
    task = max(ENV.tasks(), key=lambda t: len(t.turns))
    wanted = requests([task], 8, 3, start_turns=True)
    for rollout in play(ENV, Texts("done"), wanted):
        start = wanted[0].start_turn
        verdicts = verify(ENV, task, rollout.calls_by_turn(len(task.turns)))
        assert all(v.valid for v in verdicts[:start])
        sampled = sum(rollout.tokens.loss_mask)
        assert sampled == 2 * (len(task.turns) - start)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(1, 50), max_size=4), st.booleans()), max_size=8))
def test_ledger_keeps_order_and_lengths(segments):
    ledger, shown = Ledger(), []
    ledger.add_shown([1, 2], [1], 0)
    shown += [1, 2]
    for turn, (sampled, ids, recovery) in enumerate(segments):
        if sampled:
            ledger.add_sampled(ids, [-1.0] * len(ids), turn)
        else:
            ledger.add_shown(ids, ids[:1], turn, recovery)
        shown += ids
    tokens = ledger.tokens()
    assert [*tokens.prompt_ids, *tokens.completion_ids] == shown == ledger.context
    assert sum(tokens.loss_mask) == sum(tokens.bare_loss_mask)
    assert len(tokens.bare_completion_ids) == len(tokens.bare_loss_mask)


def test_plan_is_a_function_of_the_seed_and_ids_are_unique():
    tasks = ENV.tasks()
    a = requests(tasks, 4, 5, CUES, evolved=2)
    assert a == requests(tasks, 4, 5, CUES, evolved=2)
    assert len({r.rollout_id for r in a}) == len(a)
    assert [r.mode for r in a[:4]] == ["full", "full", "off", "off"]
    assert {r.dropped for r in a if r.mode == "off"} == {""}
    branch = requests(tasks, 4, 5, CUES, "b1", evolved=2)
    assert [r.seed for r in a] == [r.seed for r in branch]
    assert choose_tasks(tasks, 3, 0, 1, "train", 2) != choose_tasks(tasks, 3, 0, 1, "train", 3)


def test_a_withheld_tool_runs_as_the_executor_has_it():
    task = next(t for t in ENV.tasks() if t.holdout)
    tool = next(iter(task.holdout))
    assert ENV.open(task).call(Call(tool, {})).error_kind == "missing_argument"
    assert tool in {t.name for t in SHOP.tools}


def test_a_long_observation_ends_one_task_and_the_others_go_on():
    """The handed case env_context_overflow: no normal end of the turn, and no abort of the run."""
    env = load_env("bfcl")
    task = next(
        task
        for task in env.tasks()
        if task.category == "long_context"
        and len(task.turns) > 1
        and any(len(env.open(task).call(call).raw) > 20_000 for call in task.turns[0].gold[:1])
    )
    played = Request("long", task, 0, 1, start_turn=1)
    limits = Limits(4, 1500)
    assert len(CODEC.prompt(env.docs(task, 0), ())) < limits.context
    (long_one,) = play(env, tiny(), [replace(played, start_turn=0)], limits=limits)
    assert long_one.steps and long_one.stop_reason != "context_overflow"  # what it was told at first does fit
    cut, other = play(env, tiny(), [played, replace(played, rollout_id="other", start_turn=0)], limits=limits)
    assert cut.stop_reason == "context_overflow" and {step.turn for step in cut.steps} == {0}
    assert other.steps == long_one.steps
    verdicts = verify(env, task, cut.calls_by_turn(len(task.turns)))
    assert verdicts[0].valid and not success(task, verdicts, cut)
