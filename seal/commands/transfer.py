"""`seal experiment transfer`: what trained policies do in environments they were not trained in."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from seal.core.errors import ParamError
from seal.core.params import Params
from seal.evaluate.jobs import Job


def transfer(
    params: Params,
    jobs: Sequence[Job],
    out: Path,
    names: Sequence[str],
    workers: int,
    results: Path | None,
    say: Callable[[str], None],
) -> int:
    """Run and measure what is missing, print the table, write the results."""
    from seal.env import load_env
    from seal.evaluate.results import write_transfer
    from seal.evaluate.transfer import Place, place_of, run_transfer, summarise_transfer
    from seal.report.experiments import transfer_table

    places = [place_of(params, name) for name in names]
    if (home := Place(jobs[0].env, jobs[0].env_options)) in places:
        raise ParamError("--to", home.env, "policies are trained there, and home is measured anyway: leave it out")
    found = run_transfer(jobs, out, places, workers, say)
    envs: dict[str, Any] = {"": load_env(jobs[0].env, **jobs[0].env_options)}
    envs |= {place.env: load_env(place.env, **place.options) for place in places}
    scenarios = {to: {task.task_id: task.scenario_id for task in env.tasks()} for to, env in envs.items()}
    rows = summarise_transfer(found, scenarios, jobs[0].rounds[0]["evaluate"]["split"])
    print(transfer_table(rows, jobs[0].env))
    if results:
        write_transfer(results, rows, found, scenarios)
        print(f"results: {results}")
    return 0
