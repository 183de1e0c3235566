"""Nouns to rows, rows to files, and exactly back; the same rows are the same bytes; what is broken says so."""

import hashlib
import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_cases import env

from seal.core.errors import ArtifactError, ContractError
from seal.core.labels import Label
from seal.core.types import (
    STOP_REASONS,
    Call,
    CallError,
    Diagnosis,
    Result,
    Rollout,
    Step,
    Task,
    Tokens,
    UserTurn,
    Verdict,
)
from seal.interface.state import InterfaceState, Item
from seal.store.parquet import read_parquet, write_parquet
from seal.store.rows import to_json
from seal.store.schemas import TABLES
from seal.store.tables import (
    diagnoses_of,
    outcomes_of,
    read_table,
    rollouts_of,
    rows_of_diagnoses,
    rows_of_items,
    rows_of_outcomes,
    rows_of_rollouts,
    rows_of_tasks,
    rows_of_verdicts,
    tasks_of,
    verdicts_of,
    write_table,
)

text = st.text(max_size=8)
ids = st.lists(st.integers(0, 2**31 - 1), max_size=6).map(tuple)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
mapping = st.dictionaries(text, plain, max_size=3)
call = st.builds(Call, text, mapping)
result = st.builds(Result, text, text, st.sampled_from(("", "other", "permission")))
error = st.builds(CallError, text, text)
verdict = st.builds(Verdict, st.just(0), st.booleans(), st.booleans(), st.booleans(), st.floats(0, 1), mapping)
diagnosis = st.builds(
    Diagnosis,
    *(st.just(0), st.sampled_from(Label).map(str), text, st.booleans(), st.booleans(), text, text),
    *(st.integers(-1, 9), mapping, st.floats(0, 1)),
)
SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def tokens(draw) -> Tokens:
    prompt, completion = draw(ids), draw(ids)
    n = len(completion)
    mask = tuple(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    more = {
        "loss_mask": mask,
        "logprobs": tuple(draw(st.lists(st.floats(-50, 0), min_size=n, max_size=n))),
        "turn_of_token": tuple(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))),
        "interface_mask": tuple(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))),
    }
    bare = draw(st.sampled_from(((prompt, completion, mask), (prompt[:1], completion, mask), ((), (), ()))))
    names = ("bare_prompt_ids", "bare_completion_ids", "bare_loss_mask")
    return Tokens(prompt, completion, **more, **dict(zip(names, bare)))


@st.composite
def rollouts(draw) -> list[Rollout]:
    found = []
    for n in range(draw(st.integers(0, 3))):
        turns = draw(st.integers(0, 2))
        places = [(turn, step) for turn in range(turns) for step in range(draw(st.integers(1, 2)))]
        steps = tuple(
            Step(*place, draw(text), *(tuple(draw(st.lists(kind, max_size=2))) for kind in (call, error, result)))
            for place in places
        )
        found.append(
            Rollout(
                *(f"{n:016x}", f"task{n}", draw(st.integers(0, 9)), draw(st.integers(0, 2**63 - 1))),
                *(draw(st.sampled_from(("off", "full"))), draw(text), draw(text), steps),
                *(draw(st.sampled_from(STOP_REASONS)), draw(text), draw(tokens())),
            )
        )
    return found


@SETTINGS
@given(rollouts())
def test_rollouts_come_back(tmp_path, played):
    for name, rows in rows_of_rollouts(played, "r1", "train", 3).items():
        write_table(tmp_path / f"{name}.parquet", name, rows)
    assert rollouts_of(tmp_path) == played


@SETTINGS
@given(st.lists(verdict, max_size=3), st.lists(diagnosis, max_size=3), st.booleans(), st.floats(0, 1))
def test_judgements_come_back(tmp_path, verdicts, diagnoses, success, progress):
    found = [Verdict(turn, *(getattr(v, n) for n in Verdict.__slots__[1:])) for turn, v in enumerate(verdicts)]
    r = Rollout("x", "t", 0, 0, "off", "p", "bare", (), "finished")
    write_table(tmp_path / "verdicts.parquet", "verdicts", rows_of_verdicts({"x": found}, "r1", "collect"))
    write_table(tmp_path / "diagnoses.parquet", "diagnoses", rows_of_diagnoses({"x": diagnoses}, "r1", "collect"))
    outcomes = rows_of_outcomes([r], {"x": (success, progress)}, "r1", "collect")
    write_table(tmp_path / "outcomes.parquet", "outcomes", outcomes)
    assert verdicts_of(tmp_path) == ({"x": found} if found else {})
    if found:
        assert verdicts_of(tmp_path, [r]) == {"x": found}
    for others in ([], [r, replace(r, rollout_id="y")]) if found else ([r],):
        with pytest.raises(ArtifactError, match="verdicts.parquet: [01] rows of rollout [xy], where trajectories tell"):
            verdicts_of(tmp_path, others)
    assert diagnoses_of(tmp_path) == ({"x": diagnoses} if diagnoses else {})
    assert outcomes_of(tmp_path) == {"x": (success, progress)}


@SETTINGS
@given(
    st.builds(
        Task,
        *(st.just("t"), text, text, text, st.sampled_from(("train", "dev", "test"))),
        st.lists(st.builds(UserTurn, text, st.lists(call, max_size=2).map(tuple)), max_size=2).map(tuple),
        *(mapping, st.lists(text, max_size=3).map(tuple), st.dictionaries(text, st.integers(0, 9), max_size=2), text),
    )
)
def test_tasks_come_back_with_the_order_of_their_state(tmp_path, task):
    write_table(tmp_path / "tasks.parquet", "tasks", rows_of_tasks([task]))
    (back,) = tasks_of(tmp_path / "tasks.parquet")
    assert back == task
    assert list(back.initial_state) == list(task.initial_state)


def test_real_tasks_come_back(tmp_path):
    write_table(tmp_path / "shop.parquet", "tasks", rows_of_tasks(env().tasks()))
    assert {task.task_id: task for task in tasks_of(tmp_path / "shop.parquet")} == {t.task_id: t for t in env().tasks()}


@SETTINGS
@given(rollouts(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_change_a_byte(tmp_path, played, rng: random.Random):
    for name, rows in rows_of_rollouts(played, "r1", "collect").items():
        write_table(tmp_path / "one.parquet", name, rows)
        rng.shuffle(rows)
        write_table(tmp_path / "two.parquet", name, rows)
        assert md5(tmp_path / "one.parquet") == md5(tmp_path / "two.parquet")
        kind = TABLES[name]
        write_parquet(tmp_path / "three.parquet", read_table(tmp_path / "one.parquet", name), kind.key)
        assert md5(tmp_path / "three.parquet") == md5(tmp_path / "one.parquet")


def md5(path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def test_chunks_do_not_change_a_byte(tmp_path):
    table = pa.table({"a": list(range(100)), "b": ["y"] * 100})
    write_parquet(tmp_path / "one.parquet", table, ("a",))
    write_parquet(tmp_path / "two.parquet", pa.concat_tables([table.slice(60), table.slice(0, 60)]), ("a",))
    assert md5(tmp_path / "one.parquet") == md5(tmp_path / "two.parquet")


@pytest.mark.parametrize("name", TABLES)
def test_an_empty_table_has_its_schema(tmp_path, name):
    write_table(tmp_path / "t.parquet", name, [])
    table = read_table(tmp_path / "t.parquet", name)
    assert (table.num_rows, tuple(table.column_names)) == (0, TABLES[name].names)


def test_what_no_file_can_hold_is_escaped(tmp_path):
    steps = (Step(0, 0, "\ud800", (Call("f", {"a": "\ud800", "b": (1, 2), "c": {1: 2, "x": 3}}),)),)
    played = [Rollout("x", "t", 0, 0, "off", "p", "bare", steps, "finished")]
    for name, rows in rows_of_rollouts(played, "r1", "collect").items():
        write_table(tmp_path / f"{name}.parquet", name, rows)
    (step,) = rollouts_of(tmp_path)[0].steps
    assert step.text == "\\ud800"
    assert step.calls == (Call("f", {"a": "\ud800", "b": [1, 2], "c": {"1": 2, "x": 3}}),)


def test_json_of_anything_is_text():
    assert to_json({"b": {2, 1}, "a": object}) == '{"a": "<class \'object\'>", "b": [1, 2]}'


def test_items_carry_their_uplift():
    item = Item("enum", "f.a", "docs", "one of A B", "argument_mismatch", "r1", 3)
    state = InterfaceState((item,))
    uplift = {"item": item.id, "uplift": 0.5, "low": 0.1, "high": 0.9, "n_with": 4, "n_without": 2, "tasks": 2}
    (row,) = rows_of_items(state.items, state.hash, "r2", [{**uplift, "kind": "enum", "target": "f.a"}])
    assert (row["uplift"], row["n_without"], row["tokens"], row["place"]) == (0.5, 2, 4, "docs")
    (row,) = rows_of_items(state.items, state.hash, "r2")
    assert row["uplift"] is None


def outcome(**change):
    row = {"round": "r1", "phase": "collect", "rollout_id": "x", "task_id": "t", "success": True, "progress": 1.0}
    return {**row, **change}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"round": "r1"}], "without phase, progress"),
        ([outcome(extra=1)], "unknown extra"),
        ([outcome(success=None)], "1 of 1 rows are null"),
        ([outcome(phase="play")], "'play'"),
        ([outcome(), outcome(success=False)], "more than one row for round=r1, phase=collect, rollout_id=x"),
        ([outcome(progress="half")], "half"),
    ],
)
def test_rows_that_break_the_schema_are_refused(tmp_path, rows, said):
    with pytest.raises(ContractError, match="outcomes") as caught:
        write_table(tmp_path / "outcomes.parquet", "outcomes", rows)
    assert said in str(caught.value)
    assert not (tmp_path / "outcomes.parquet").exists()


def test_a_missing_file_names_the_way_out(tmp_path):
    with pytest.raises(ArtifactError, match="run the stage that writes it"):
        read_table(tmp_path / "outcomes.parquet", "outcomes")


@pytest.mark.parametrize("size", [0, 3, 200])
def test_a_truncated_file_is_one_error(tmp_path, size):
    path = tmp_path / "outcomes.parquet"
    write_table(path, "outcomes", [outcome()])
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ArtifactError, match="dvc checkout"):
        read_table(path, "outcomes")


def test_tables_of_another_kind_version_or_shape_are_told_apart(tmp_path):
    path, kind = tmp_path / "outcomes.parquet", TABLES["outcomes"]
    write_table(path, "outcomes", [outcome()])
    with pytest.raises(ArtifactError, match="of outcomes, not verdicts"):
        read_table(path, "verdicts")
    table = read_parquet(path)
    write_parquet(path, table.replace_schema_metadata({"seal.table": "outcomes", "seal.version": "99"}))
    with pytest.raises(ArtifactError, match=r"version 99 of outcomes\n  -> this version of seal reads version 1"):
        read_table(path, "outcomes")
    write_parquet(path, table.drop_columns(["progress"]))
    with pytest.raises(ContractError, match="without progress"):
        read_table(path, "outcomes")
    write_parquet(path, table.set_column(5, "progress", pa.array(["1"])).replace_schema_metadata(kind.schema.metadata))
    with pytest.raises(ContractError, match="string, not double"):
        read_table(path, "outcomes")
    pq.write_table(table.replace_schema_metadata(None), path)
    with pytest.raises(ArtifactError, match="no known kind"):
        read_table(path, "outcomes")
