"""`seal experiment transfer`: what trained policies do in environments they were not trained in."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seal.core.errors import ParamError
from seal.experiment.jobs import Job
from seal.settings.params import Params

if TYPE_CHECKING:
    from seal.experiment.transfer import Place


def transfer(
    params: Params,
    jobs: Sequence[Job],
    out: Path,
    names: Sequence[str],
    workers: int,
    results: Path | None,
    say: Callable[[str], None],
) -> int:
    """Run and measure what is missing, print the table, write the results.

    Of an interrupted run, the jobs that are finished: they come in order.
    """
    from seal.experiment.transfer import Place, place_of, run_transfer

    places = [place_of(params, name, jobs[0].start["policy"]["kind"]) for name in names]
    if (home := Place(jobs[0].env, jobs[0].env_options)) in places:
        raise ParamError("--to", home.env, "policies are trained there, and home is measured anyway: leave it out")
    finished: list[str] = []

    def done(text: str) -> None:
        finished.append(text)
        say(text)

    try:
        run_transfer(jobs, out, places, workers, done)
    finally:  # what is finished is worth having, also where the rest was interrupted
        if ended := jobs[: len(finished)]:
            rows, write = _print_table(ended, run_transfer(ended, out, places), places)
            if results and len(ended) < len(jobs) and _loses(results, rows):
                print(f"results: {results} holds more seeds or arms than are finished, and stays as it is")
            elif results:
                write(results)
                print(f"results: {results}")
    return 0


def _print_table(
    jobs: Sequence[Job], found: Sequence[Mapping[str, Any]], places: Sequence["Place"]
) -> tuple[list[dict[str, Any]], Callable[[Path], None]]:
    """Print the table; its rows, and what writes the results to a folder."""
    from seal.env import load_env
    from seal.experiment.results import write_transfer
    from seal.experiment.transfer import summarise_transfer
    from seal.report.experiments import transfer_table

    envs: dict[str, Any] = {"": load_env(jobs[0].env, **jobs[0].env_options)}
    envs |= {place.env: load_env(place.env, **place.options) for place in places}
    scenarios = {to: {task.task_id: task.scenario_id for task in env.tasks()} for to, env in envs.items()}
    rows = summarise_transfer(found, scenarios, jobs[0].rounds[0]["evaluate"]["split"])
    print(transfer_table(rows, jobs[0].env))
    return rows, lambda folder: write_transfer(folder, rows, found, scenarios)


def _loses(results: Path, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a folder's table is of more than these rows are."""
    from seal.report.experiments import read_transfer

    seeds = {(row["to"], row["arm"]): row["seeds"] for row in rows}
    return any(row["seeds"] > seeds.get((row["to"], row["arm"]), 0) for row in read_transfer(results))
