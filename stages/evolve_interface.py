"""evolve_interface@<round>: the next interface from the round's evidence, with a row for every decision."""

from seal.pipeline.phases import evolve_interface
from seal.pipeline.stage import Stage, main
from seal.policy import load_policy, policy_info


def run(stage: Stage) -> None:
    folder, parent = stage.folder, stage.parent
    plays = stage.entry.evolve.gate.tasks > 0  # a policy that need not play is only looked at
    policy = (load_policy if plays else policy_info)(parent.path / "policy")
    state = stage.state(
        parent.checkpoint("interface", policy=policy),
        judged=folder.judged(stage.env),
        profile=folder.profile(),
    )
    folder.write_evolve(evolve_interface(state, stage.entry))


if __name__ == "__main__":
    main(run)
