"""Every table: its columns, its key (which is also its order), its version. docs/tables.md explains the columns."""

from dataclasses import dataclass

import pyarrow as pa

TEXT = pa.string()


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
NESTED = {"CALLS": CALLS, "ERRORS": ERRORS, "RESULTS": RESULTS, "TURNS": TURNS}

# what there is of any played rollouts (of those that can be trained on also their tokens), and what is found out about
# them; training that plays writes it all
OF_PLAY = ("trajectories", "steps")
OF_JUDGES = ("outcomes", "verdicts", "diagnoses")
OF_TRAINING = (*OF_PLAY, "tokens", *OF_JUDGES)
# stage folder -> the tables that it always has, of a round and of a start; OF_TRAINING only where training played
OF_ROUND = {
    "collect": (*OF_PLAY, "tokens"),
    "verify": ("outcomes", "verdicts"),
    "diagnose": ("diagnoses", "profile"),
    "interface": ("interface_items", "changes", "decisions"),
    "train": (*OF_TRAINING, "weights", "replay"),
    "evaluate": (*OF_PLAY, *OF_JUDGES, "evaluations", "validation"),
}
OF_START = {"diagnose": ("profile",), "train": ("replay",), "evaluate": (*OF_PLAY, *OF_JUDGES, "evaluations")}

# table -> its key, then its columns in order, each with its type as Arrow names it; NULL: may be null
_DECLARED = {
    "tasks": """
        KEY env, task_id
        env string, task_id string, category string, scenario_id string, split string, turns TURNS,
        initial_state string, toolset string[], holdout string, known_bad string
    """,
    "trajectories": """
        KEY round, phase, train_step, rollout_id
        round string, phase string, train_step int32, rollout_id string, task_id string, category string NULL,
        sample int32, seed int64, policy_hash string, interface_hash string, interface_mode string,
        dropped_item string, n_turns int32 NULL, n_turns_reached int32, n_steps int32, n_tokens int32,
        stop_reason string
    """,
    "steps": """
        KEY round, phase, rollout_id, turn, step
        round string, phase string, rollout_id string, turn int32, step int32, text string, calls CALLS,
        errors ERRORS, results RESULTS
    """,
    "tokens": """
        KEY round, phase, rollout_id
        round string, phase string, rollout_id string, prompt_ids int32[], completion_ids int32[], loss_mask int8[],
        logprobs double[], turn_of_token int32[], interface_mask int8[], bare_prompt_ids int32[] NULL,
        bare_completion_ids int32[] NULL, bare_loss_mask int8[] NULL
    """,
    "outcomes": """
        KEY round, phase, rollout_id
        round string, phase string, rollout_id string, task_id string, success bool, progress double
    """,
    "verdicts": """
        KEY round, phase, rollout_id, turn
        round string, phase string, rollout_id string, turn int32, state_ok bool, response_ok bool, valid bool,
        confidence double, evidence string
    """,
    "diagnoses": """
        KEY round, phase, rollout_id, turn, rank
        round string, phase string, rollout_id string, turn int32, rank int32, label string, detail string,
        primary bool, root bool, tool string, parameter string, step int32, evidence string, confidence double
    """,
    "profile": """
        KEY round, category, tool, parameter, label
        round string, category string, tool string, parameter string, label string, n int64, turns int64, rate double,
        low double, high double, n_parent int64, turns_parent int64, change double, change_low double,
        change_high double, trend string, rollouts string[]
    """,
    "interface_items": """
        KEY round, item
        round string, interface_hash string, item string, kind string, target string, place string, text string,
        tokens int32, born_in string, label string, support int64, status string, evidence string, uplift double NULL,
        low double NULL, high double NULL, n_with int64 NULL, n_without int64 NULL, tasks int64 NULL
    """,
    "changes": """
        KEY round, action, item, label, reason
        round string, action string, item string, kind string, target string, place string, text string, tokens int32,
        label string, support int64, rate double, reason string, evidence string[]
    """,
    "decisions": """
        KEY round, item
        round string, item string, kind string, target string, decision string, uplift double, low double,
        high double, uplift_success double, n int64, scenarios int64
    """,
    "weights": """
        KEY round, phase, train_step, rollout_id, turn
        round string, phase string, train_step int32, rollout_id string, turn int32, advantage double, utility double,
        weight double, reason string
    """,
    "replay": """
        KEY round, place
        round string, place int32, rollout_id string, prompt_ids int32[], completion_ids int32[], loss_mask int32[],
        logprobs double[], turn_of_token int32[], advantages double[]
    """,
    "evaluations": """
        KEY round, phase, suite, split, mode, task_id, trial
        round string, phase string, rollout_id string, suite string, split string, mode string, task_id string,
        trial int32, success bool, progress double
    """,
    "validation": """
        KEY round, dataset, expectation, columns
        round string, dataset string, expectation string, columns string, rows int64, failing int64, success bool
    """,
}


def _type(name: str) -> pa.DataType:
    """One of NESTED, a name that Arrow has, or a list of such, as in `string[]`."""
    if name.endswith("[]"):
        return listed(_type(name[:-2]))
    return NESTED[name] if name in NESTED else pa.type_for_alias(name)


def _table(name: str, declared: str) -> Table:
    key, *columns = declared.strip().splitlines()
    parts = [column.split() for column in " ".join(columns).split(",")]
    named = tuple((part[0], _type(part[1])) for part in parts)
    optional = frozenset(part[0] for part in parts if part[2:] == ["NULL"])
    return Table(name, tuple(key.removeprefix("KEY ").split(", ")), named, optional)


TABLES: dict[str, Table] = {name: _table(name, declared) for name, declared in _DECLARED.items()}
