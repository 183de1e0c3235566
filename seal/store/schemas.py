"""Every table: its columns, its key (which is also its order), its version. docs/tables.md explains the columns."""

from dataclasses import dataclass

import pyarrow as pa

TEXT, INT, FLOAT, BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
SMALL = pa.int32()


def listed(kind: pa.DataType) -> pa.DataType:
    """A list whose child is named as Parquet names it: any other name would change the bytes on the second writing."""
    return pa.list_(pa.field("element", kind))


@dataclass(frozen=True, slots=True)
class Table:
    """`key` identifies a row; rows are sorted by it. Columns not in `optional` hold no null."""

    name: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, pa.DataType], ...]
    optional: frozenset[str] = frozenset()
    version: int = 1

    @property
    def schema(self) -> pa.Schema:
        fields = [pa.field(name, kind, nullable=name in self.optional) for name, kind in self.columns]
        return pa.schema(fields, {"seal.table": self.name, "seal.version": str(self.version)})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)


CALLS = listed(pa.struct([("name", TEXT), ("arguments", TEXT)]))
ERRORS = listed(pa.struct([("kind", TEXT), ("message", TEXT)]))
RESULTS = listed(pa.struct([("shown", TEXT), ("raw", TEXT), ("error_kind", TEXT)]))
TURNS = listed(pa.struct([("message", TEXT), ("gold", CALLS)]))
_PLAYED = (("round", TEXT), ("phase", TEXT), ("rollout_id", TEXT))
_UPLIFT = ("uplift", "low", "high", "n_with", "n_without", "tasks")
# what there is of any played rollouts (of those that can be trained on also their tokens), and what is found out about
# them; training that plays writes it all
OF_PLAY = ("trajectories", "steps")
OF_JUDGES = ("outcomes", "verdicts", "diagnoses")
OF_FRESH = (*OF_PLAY, "tokens", *OF_JUDGES)
# stage folder -> the tables that it always has, of a round and of a start; those of OF_FRESH only where training played
OF_ROUND = {
    "collect": (*OF_PLAY, "tokens"),
    "verify": ("outcomes", "verdicts"),
    "diagnose": ("diagnoses", "profile"),
    "interface": ("interface_items", "changes", "decisions"),
    "train": (*OF_FRESH, "weights", "replay"),
    "evaluate": (*OF_PLAY, *OF_JUDGES, "evaluations", "validation"),
}
OF_START = {
    "diagnose": ("profile",),
    "train": ("replay",),
    "evaluate": (*OF_PLAY, *OF_JUDGES, "evaluations"),
}

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table(
            "tasks",
            ("env", "task_id"),
            (
                *(("env", TEXT), ("task_id", TEXT), ("category", TEXT), ("scenario_id", TEXT), ("split", TEXT)),
                *(("turns", TURNS), ("initial_state", TEXT), ("toolset", listed(TEXT)), ("holdout", TEXT)),
                ("known_bad", TEXT),
            ),
        ),
        Table(
            "trajectories",
            ("round", "phase", "train_step", "rollout_id"),
            (
                *(("round", TEXT), ("phase", TEXT), ("train_step", SMALL), ("rollout_id", TEXT), ("task_id", TEXT)),
                *(("category", TEXT), ("sample", SMALL), ("seed", INT), ("policy_hash", TEXT)),
                *(("interface_hash", TEXT), ("interface_mode", TEXT), ("dropped_item", TEXT), ("n_turns", SMALL)),
                *(("n_turns_reached", SMALL), ("n_steps", SMALL), ("n_tokens", SMALL), ("stop_reason", TEXT)),
            ),
            optional=frozenset({"category", "n_turns"}),
        ),
        Table(
            "steps",
            ("round", "phase", "rollout_id", "turn", "step"),
            (
                *(*_PLAYED, ("turn", SMALL), ("step", SMALL), ("text", TEXT)),
                *(("calls", CALLS), ("errors", ERRORS), ("results", RESULTS)),
            ),
        ),
        Table(
            "tokens",
            ("round", "phase", "rollout_id"),
            (
                *(*_PLAYED, ("prompt_ids", listed(SMALL)), ("completion_ids", listed(SMALL))),
                *(("loss_mask", listed(pa.int8())), ("logprobs", listed(FLOAT)), ("turn_of_token", listed(SMALL))),
                *(("interface_mask", listed(pa.int8())), ("bare_prompt_ids", listed(SMALL))),
                *(("bare_completion_ids", listed(SMALL)), ("bare_loss_mask", listed(pa.int8()))),
            ),
            optional=frozenset({"bare_prompt_ids", "bare_completion_ids", "bare_loss_mask"}),
        ),
        Table(
            "outcomes",
            ("round", "phase", "rollout_id"),
            (*_PLAYED, ("task_id", TEXT), ("success", BOOL), ("progress", FLOAT)),
        ),
        Table(
            "verdicts",
            ("round", "phase", "rollout_id", "turn"),
            (
                *(*_PLAYED, ("turn", SMALL), ("state_ok", BOOL), ("response_ok", BOOL), ("valid", BOOL)),
                *(("confidence", FLOAT), ("evidence", TEXT)),
            ),
        ),
        Table(
            "diagnoses",
            ("round", "phase", "rollout_id", "turn", "rank"),
            (
                *(*_PLAYED, ("turn", SMALL), ("rank", SMALL), ("label", TEXT), ("detail", TEXT), ("primary", BOOL)),
                *(("root", BOOL), ("tool", TEXT), ("parameter", TEXT), ("step", SMALL), ("evidence", TEXT)),
                ("confidence", FLOAT),
            ),
        ),
        Table(
            "profile",
            ("round", "category", "tool", "parameter", "label"),
            (
                *(("round", TEXT), ("category", TEXT), ("tool", TEXT), ("parameter", TEXT), ("label", TEXT)),
                *(("n", INT), ("turns", INT), ("rate", FLOAT), ("low", FLOAT), ("high", FLOAT), ("n_parent", INT)),
                *(("turns_parent", INT), ("change", FLOAT), ("change_low", FLOAT), ("change_high", FLOAT)),
                *(("trend", TEXT), ("rollouts", listed(TEXT))),
            ),
        ),
        Table(
            "interface_items",
            ("round", "item"),
            (
                *(("round", TEXT), ("interface_hash", TEXT), ("item", TEXT), ("kind", TEXT), ("target", TEXT)),
                *(("place", TEXT), ("text", TEXT), ("tokens", SMALL), ("born_in", TEXT), ("label", TEXT)),
                *(("support", INT), ("status", TEXT), ("evidence", TEXT), ("uplift", FLOAT), ("low", FLOAT)),
                *(("high", FLOAT), ("n_with", INT), ("n_without", INT), ("tasks", INT)),
            ),
            optional=frozenset(_UPLIFT),
        ),
        Table(
            "changes",
            ("round", "action", "item", "label", "reason"),
            (
                *(("round", TEXT), ("action", TEXT), ("item", TEXT), ("kind", TEXT), ("target", TEXT)),
                *(("place", TEXT), ("text", TEXT), ("tokens", SMALL), ("label", TEXT), ("support", INT)),
                *(("rate", FLOAT), ("reason", TEXT), ("evidence", listed(TEXT))),
            ),
        ),
        Table(
            "decisions",
            ("round", "item"),
            (
                *(("round", TEXT), ("item", TEXT), ("kind", TEXT), ("target", TEXT), ("decision", TEXT)),
                *(("uplift", FLOAT), ("low", FLOAT), ("high", FLOAT), ("uplift_success", FLOAT), ("n", INT)),
                ("scenarios", INT),
            ),
        ),
        Table(
            "weights",
            ("round", "phase", "train_step", "rollout_id", "turn"),
            (
                *(("round", TEXT), ("phase", TEXT), ("train_step", SMALL), ("rollout_id", TEXT), ("turn", SMALL)),
                *(("advantage", FLOAT), ("utility", FLOAT), ("weight", FLOAT), ("reason", TEXT)),
            ),
        ),
        Table(
            "replay",
            ("round", "place"),
            (
                *(("round", TEXT), ("place", SMALL), ("rollout_id", TEXT)),
                *((name, listed(SMALL)) for name in ("prompt_ids", "completion_ids", "loss_mask")),
                *(("logprobs", listed(FLOAT)), ("turn_of_token", listed(SMALL)), ("advantages", listed(FLOAT))),
            ),
        ),
        Table(
            "evaluations",
            ("round", "phase", "suite", "split", "mode", "task_id", "trial"),
            (
                *(*_PLAYED, ("suite", TEXT), ("split", TEXT), ("mode", TEXT), ("task_id", TEXT), ("trial", SMALL)),
                *(("success", BOOL), ("progress", FLOAT)),
            ),
        ),
        Table(
            "validation",
            ("round", "dataset", "expectation", "columns"),
            (
                *(("round", TEXT), ("dataset", TEXT), ("expectation", TEXT), ("columns", TEXT), ("rows", INT)),
                *(("failing", INT), ("success", BOOL)),
            ),
        ),
    )
}
