"""`seal diagnose --sensitivity`: what each priority of labels does to the failure profile and to the turn weights."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seal.core.errors import RoundError

if TYPE_CHECKING:
    from seal.core.judged import Judged
    from seal.core.labels import Label
    from seal.core.types import Rollout
    from seal.env.base import Environment

SCRIPTED_TASKS, GROUP, RATE = 60, 6, 0.4  # where no round was collected: faulty scripted play
PRIORITIES = ("fixed", "frequency", "learned")


def print_sensitivity(root: Path, round_id: str | None, env_name: str | None) -> None:
    """Three tables: the orders, the profile (primary labels of root failing turns), the weights."""
    from seal.core.judged import bare_or_all
    from seal.diagnose.judge import label as label_all
    from seal.diagnose.label_worth import order_by, worth
    from seal.report.tables import text_table

    title, env, played = _played(root, round_id, env_name)
    bare = bare_or_all(played)
    found = worth(env, bare)
    orders = {name: order_by(name, env, bare) for name in PRIORITIES}
    judged = {name: label_all(env, played, order) for name, order in orders.items()}
    print(f"{title}: {len(played):,} rollouts, {len(bare):,} of them bare\n")
    print("Place of each label, and what repairing it alone is worth: verdicts that flip per turn that carries it\n")
    rows = []
    for label, w in found.items():
        places = (str(order.index(label) + 1) for order in orders.values())
        rows.append((label, *places, str(w.turns), str(w.flips), f"{w.mean:.2f}"))
    print(text_table(("label", *PRIORITIES, "turns", "flips", "worth"), rows, (0,)))
    print("\nProfile: share of the failing turns of bare rollouts that each label is the primary one of, in percent\n")
    shares = {name: _shares(bare_or_all(of_one)) for name, of_one in judged.items()}
    print(_by_label(orders["fixed"], shares, lambda value: f"{100 * value:.1f}"))
    weights = {name: _weights(of_one) for name, of_one in judged.items()}
    print("\nWeights: mean of the failing turns of failed rollouts by primary label (weights average 1)\n")
    print(
        _by_label(orders["fixed"], {name: means for name, (means, _) in weights.items()}, lambda value: f"{value:.2f}")
    )
    base = weights["fixed"][1]
    for name in PRIORITIES[1:]:
        moved = [abs(weight - base[key]) for key, weight in weights[name][1].items()]
        changed = sum(change > 1e-9 for change in moved)
        mean = sum(moved) / len(moved) if moved else 0.0
        print(f"\n{name}: {changed:,} of {len(moved):,} turn weights move, by {mean:.3f} on average", end="")
    print()


def _played(root: Path, round_id: str | None, env_name: str | None) -> "tuple[str, Environment, list[Judged]]":
    """A round's collected rollouts (default: the last one collected), or scripted ones where there is none."""
    from seal.diagnose.judge import judge
    from seal.env import env_of, load_env

    if (root / "params.yaml").is_file() and not env_name:
        from seal.settings.params import load_params
        from seal.store.judged import read_judged
        from seal.workspace.lineage import Lineage, diagnosed_rounds, path_of

        lineage = Lineage(load_params(root / "params.yaml"))
        collected = diagnosed_rounds(root, (id for id, _ in lineage.walk() if lineage.parent(id)))
        if round_id and round_id not in collected:
            raise RoundError(
                "collected round", round_id, f"diagnosed rounds: {', '.join(collected) or 'none yet: seal run'}"
            )
        if collected:
            id = round_id or collected[-1]
            env = env_of(lineage.params, lineage.entry(id).env)
            return id, env, read_judged(*(path_of(root, id, what) for what in ("collect", "verify", "diagnose")))
    env = load_env(env_name or "shop")
    return f"{env.name}, scripted play with faults", env, judge(env, _scripted(env), "fixed")


def _scripted(env: "Environment") -> "list[Rollout]":
    from seal.policy.scripted import FaultyPolicy
    from seal.rollout.engine import Request, play

    tasks = [task for task in env.tasks() if not task.known_bad][:: max(1, len(env.tasks()) // SCRIPTED_TASKS)]
    requests = [
        Request(f"{task.task_id}/{k}", task, k, 1000 * i + k) for i, task in enumerate(tasks) for k in range(GROUP)
    ]
    return play(env, FaultyPolicy(RATE, format="pythonic"), requests)


def _shares(judged: "Sequence[Judged]") -> dict[str, float]:
    from seal.train.reweight import root_failures

    counts = Counter(label for j in judged for label, _ in root_failures(j).values())
    return {label: n / counts.total() for label, n in counts.items()}


def _weights(judged: "Sequence[Judged]") -> tuple[dict[str, float], dict[tuple[str, int], float]]:
    """(mean weight of root failing turns by label, every turn's weight): one step of the default weights, a turn a unit
    and every rollout trained on."""
    from seal.settings.train import TrainParams
    from seal.train.reweight import Factors, normalised, root_failures, turn_weights, update_factors

    params = TrainParams()
    usable = [j for j in judged if j.usable]
    state = update_factors(Factors(), usable, params)
    rows = []
    for j in usable:
        turns = dict.fromkeys(sorted({verdict.turn for verdict in j.verdicts}), 1)
        rows += turn_weights(j, 1.0 if j.success else -1.0, turns, params, state)
    weight = {(row.rollout_id, row.turn): row.weight for row in normalised(rows, params)}
    by_label: dict[str, list[float]] = {}
    for j in usable:
        if not j.success:
            for turn, (label, _) in root_failures(j).items():
                by_label.setdefault(label, []).append(weight[j.rollout.rollout_id, turn])
    return {label: sum(values) / len(values) for label, values in by_label.items()}, weight


def _by_label(order: "Sequence[Label]", columns: Mapping[str, Mapping[str, float]], said) -> str:
    from seal.report.tables import text_table

    labels = [label for label in order if any(label in column for column in columns.values())]
    rows = [(str(label), *(said(c[label]) if label in c else "-" for c in columns.values())) for label in labels]
    return text_table(("label", *columns), rows, (0,))
