"""evolve_interface@<round>: the next interface from the round's evidence, with a row for every decision."""

from _stage import main

from seal.core.seeds import RoundKey
from seal.evolve.next_interface import next_interface
from seal.pipeline.stage import Stage
from seal.policy import counter_of
from seal.store.files import atomic_dir, atomic_file, write_json
from seal.store.tables import read_table, rows_of_items, write_table


def run(stage: Stage) -> None:
    profile = read_table(stage.path("diagnose") / "profile.parquet", "profile").to_pylist()
    policy = stage.policy(stage.parent, plays=stage.entry.evolve.gate.tasks > 0)
    evolved = next_interface(
        stage.env,
        policy,
        stage.interface(stage.parent),
        stage.judged(),
        profile,
        stage.entry,
        RoundKey(stage.id, stage.depth, stage.seed),
    )
    with atomic_file(stage.path("interface.json")) as partial:
        partial.write_text(evolved.state.to_json())
    items = rows_of_items(evolved.state.items, evolved.state.hash, stage.id, evolved.uplifts, counter_of(policy))
    with atomic_dir(stage.path("interface")) as out:
        write_table(out / "interface_items.parquet", "interface_items", items)
        write_table(out / "changes.parquet", "changes", evolved.changes)
        write_table(out / "decisions.parquet", "decisions", evolved.decisions)
        write_json(out / "spent.json", dict(evolved.spent))


if __name__ == "__main__":
    main(run)
