"""What a finished round's tables promise, as data. seal.store.contracts makes Great Expectations suites of it.

A `claim` is an SQL condition on the row `t`; it sees the other tables of its group by their names, and `tasks`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seal.core.labels import FAILURES
from seal.core.types import ERROR_KINDS
from seal.store.schemas import TABLES

PLAYED = ("trajectories", "steps", "verdicts", "outcomes", "diagnoses")
# group -> table -> the stage folder it lies in. Tables of a group are about the same rollouts.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "collect": {
        **dict.fromkeys(("trajectories", "steps", "tokens"), "collect"),
        **dict.fromkeys(("verdicts", "outcomes"), "verify"),
        **dict.fromkeys(("diagnoses", "profile"), "diagnose"),
        **dict.fromkeys(("interface_items", "changes", "decisions"), "interface"),
    },
    "train": dict.fromkeys((*PLAYED, "tokens", "weights", "replay"), "train"),
    "evaluate": dict.fromkeys((*PLAYED, "tokens", "evaluations"), "evaluate"),
}
MAY_LACK = frozenset({"tokens", "interface_items", "changes", "decisions", "weights", "replay"})
AT_LEAST_ONE_ROW = frozenset({*PLAYED, "evaluations"})

SHARE, COUNT = (0.0, 1.0), (0, None)
RANGES: Mapping[str, Mapping[str, tuple[float | None, float | None]]] = {
    "trajectories": {"train_step": COUNT, "sample": COUNT, "n_turns": (1, None), "n_steps": COUNT, "n_tokens": COUNT},
    "steps": {"turn": COUNT, "step": COUNT},
    "verdicts": {"turn": COUNT, "confidence": SHARE},
    "outcomes": {"progress": SHARE},
    "diagnoses": {"turn": COUNT, "rank": COUNT, "step": (-1, None), "confidence": SHARE},
    "profile": {"n": COUNT, "turns": COUNT, "rate": SHARE, "low": SHARE, "high": SHARE, "change": (-1.0, 1.0)},
    "interface_items": {"tokens": COUNT, "support": COUNT, "uplift": (-1.0, 1.0)},
    "changes": {"tokens": COUNT, "support": COUNT, "rate": SHARE},
    "decisions": {"uplift": (-1.0, 1.0), "n": COUNT},
    "weights": {"train_step": COUNT, "turn": COUNT, "weight": (0.0, None)},
    "replay": {"place": COUNT},
    "evaluations": {"trial": COUNT, "progress": SHARE},
}


@dataclass(frozen=True, slots=True)
class Claim:
    """`group` "" is every group that has all tables in `needs`. `says`: what is claimed, for people."""

    table: str
    says: str
    sql: str
    group: str = ""
    needs: tuple[str, ...] = ()


def _words(words) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))


_OF_ROLLOUT = "SELECT count(*) FROM {} o WHERE o.rollout_id = t.rollout_id"
_HAS_ROLLOUT, _ONE_ROLLOUT = "its rollout is in trajectories", f"({_OF_ROLLOUT.format('trajectories')}) = 1"


def _claims(table: str, says: Mapping[str, str]) -> list[Claim]:
    """Claims of a table in every group; `says`: what is claimed -> its SQL."""
    return [Claim(table, claim, sql) for claim, sql in says.items()]


def _as_long(*names: str) -> str:
    """These lists are as long as completion_ids."""
    return " AND ".join(f"len(t.{name}) = len(t.completion_ids)" for name in names)


CLAIMS: tuple[Claim, ...] = (
    *_claims("steps", {
        _HAS_ROLLOUT: _ONE_ROLLOUT,
        "a result per call": "len(t.results) = len(t.calls)",
        "error kinds are known":
            f"len(list_filter(t.results, lambda r: r.error_kind NOT IN ('', {_words(ERROR_KINDS)}))) = 0",
    }),
    *_claims("tokens", {
        _HAS_ROLLOUT: _ONE_ROLLOUT,
        "lists of one length": _as_long("loss_mask", "logprobs", "turn_of_token", "interface_mask"),
        "as many tokens sampled as counted":
            "coalesce(list_sum(t.loss_mask), 0) ="
            " (SELECT sum(n_tokens) FROM trajectories o WHERE o.rollout_id = t.rollout_id)",
        "the bare form has the same sampled tokens":
            "coalesce(list_sum(t.bare_loss_mask), list_sum(t.loss_mask), 0) = coalesce(list_sum(t.loss_mask), 0) AND"
            " len(coalesce(t.bare_completion_ids, t.completion_ids)) = len(coalesce(t.bare_loss_mask, t.loss_mask))",
        "log probabilities are at most 0":
            "coalesce(list_max(t.logprobs), 0) <= 1e-6 AND len(list_filter(t.logprobs, lambda p: isnan(p))) = 0",
    }),
    *_claims("verdicts", {
        _HAS_ROLLOUT: _ONE_ROLLOUT,
        "its turn has one primary label":
            '(SELECT count(*) FILTER (d."primary") FROM diagnoses d'
            " WHERE d.rollout_id = t.rollout_id AND d.turn = t.turn) = 1",
    }),
    *_claims("outcomes", {
        _HAS_ROLLOUT: _ONE_ROLLOUT,
        "a success has every turn valid": "NOT t.success OR t.progress = 1",
        "progress is the share of valid turns":
            "abs(t.progress - (SELECT avg(v.valid::INT) FROM verdicts v WHERE v.rollout_id = t.rollout_id)) < 1e-9",
    }),
    *_claims("diagnoses", {
        _HAS_ROLLOUT: _ONE_ROLLOUT,
        "its turn has a verdict":
            "(SELECT count(*) FROM verdicts v WHERE v.rollout_id = t.rollout_id AND v.turn = t.turn) = 1",
        "a consequence is a failure": f"t.root OR t.label IN ({_words({*FAILURES, 'env_error'})})",
    }),
    *_claims("evaluations", {
        _HAS_ROLLOUT: _ONE_ROLLOUT,
        "agrees with the outcome":
            "(SELECT bool_and(o.success = t.success AND o.progress = t.progress) FROM outcomes o"
            " WHERE o.rollout_id = t.rollout_id)",
    }),
    Claim("trajectories", "one outcome per rollout", f"({_OF_ROLLOUT.format('outcomes')}) = 1"),
    Claim("trajectories", "one row of tokens per rollout", f"({_OF_ROLLOUT.format('tokens')}) = 1", needs=("tokens",)),
    *_claims("trajectories", {
        "its steps are all there": f"({_OF_ROLLOUT.format('steps')}) = t.n_steps",
        "a verdict per user turn": f"t.n_turns IS NULL OR ({_OF_ROLLOUT.format('verdicts')}) = t.n_turns",
        "reached turns exist": "t.n_turns IS NULL OR t.n_turns_reached BETWEEN 0 AND t.n_turns",
    }),
    Claim("trajectories", "its task is known", "t.task_id IN (SELECT task_id FROM tasks)", needs=("tasks",)),
    Claim("trajectories", "played bare under no interface", "t.interface_mode <> 'off' OR t.interface_hash = 'bare'"),
    Claim("trajectories", "played by the parent's policy", "t.policy_hash = (SELECT hash FROM parent_policy)",
          group="collect", needs=("parent_policy",)),
    Claim("trajectories", "one policy plays an evaluation",
          "(SELECT count(DISTINCT policy_hash) FROM trajectories) = 1", group="evaluate"),
    *_claims("profile", {
        "the rate is n of turns": "t.n <= t.turns AND abs(t.rate * t.turns - t.n) < 1e-6",
        "the interval holds the rate": "t.rate BETWEEN t.low - 1e-9 AND t.high + 1e-9",
    }),
    Claim("weights", "its rollout was played",
          "t.rollout_id IN (SELECT rollout_id FROM trajectories UNION SELECT rollout_id FROM collect.trajectories)",
          needs=("collect.trajectories",)),
    *_claims("replay", {
        "its lists have one length": _as_long("loss_mask", "logprobs", "turn_of_token", "advantages"),
        "it holds something to imitate": "list_max(t.advantages) > 0",
    }),
)  # fmt: skip


def claims_of(name: str) -> tuple[Claim, ...]:
    """The claims of a table; first, as one, that no column is null that must not be."""
    table = TABLES[name]
    needed = [column for column in table.names if column not in table.optional]
    filled = Claim(name, "nothing is missing", " AND ".join(f't."{column}" IS NOT NULL' for column in needed))
    return filled, *(claim for claim in CLAIMS if claim.table == name)
