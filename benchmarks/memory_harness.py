"""BFCL V4 memory as the official harness plays it: the policy writes the memory itself, then it is asked.

Conversation by conversation, all scenarios and backends beside each other: what a policy's calls left in memory is what
the next conversation, and at last every question, starts from. Nothing else of a conversation goes on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from seal.core.seeds import rollout_id, seed_for
from seal.core.types import Json, Rollout, Task
from seal.env.bfcl_memory import SCENARIOS, BfclMemoryEnv
from seal.policy.base import Limits, Policy
from seal.rollout.engine import PlayRun, Request, play
from seal.verify.turns import verify

Place = tuple[str, str]  # backend, scenario


@dataclass(frozen=True, slots=True)
class MemoryRun:
    """What one policy wrote and answered. `memory`: after all conversations; `right`: a question's official verdict."""

    memory: Mapping[Place, Json]
    conversations: tuple[Rollout, ...]
    answers: tuple[Rollout, ...]
    right: Mapping[str, bool]

    def score(self, category: str = "memory_") -> float:
        """Share of right answers among the tasks whose id starts so, as "memory_kv"."""
        found = [right for task_id, right in self.right.items() if task_id.startswith(category)]
        return sum(found) / len(found) if found else 0.0


def play_memory(
    env: BfclMemoryEnv,
    policy: Policy,
    limits: Limits = Limits(),
    temperature: float = 0.0,
    run_seed: int = 0,
    scenarios: tuple[str, ...] = SCENARIOS,
    on_progress: Callable[[int], None] | None = None,
) -> MemoryRun:
    """All prerequisite conversations, then all questions, of the environment's backends. `on_progress` as in play."""

    def played(tasks: list[Task]) -> list[Rollout]:
        requests = [
            Request(
                rollout_id("memory", "evaluate", 0, task.task_id, 0),
                task,
                0,
                seed_for(run_seed, 0, "evaluate", 0, task.task_id, 0),
            )
            for task in tasks
        ]
        return play(env, policy, requests, limits=limits, temperature=temperature, run=PlayRun(on_progress))

    places: list[Place] = [(backend, scenario) for backend in env.backends for scenario in scenarios]
    memory: dict[Place, Json] = {place: {} for place in places}
    conversations: list[Rollout] = []
    for number in range(max(map(env.conversations, scenarios))):
        now = [(b, s) for b, s in places if number < env.conversations(s)]
        tasks = [env.conversation(b, s, number, memory[b, s]) for b, s in now]
        rollouts = played(tasks)
        for place, task, rollout in zip(now, tasks, rollouts, strict=True):
            memory[place] = env.after(task, [call for step in rollout.steps for call in step.calls])
        conversations += rollouts
    asked = [env.question(b, name, memory[b, s]) for b, s in places for name in env.questions(s)]
    answers = played(asked)
    right = {
        task.task_id: verify(env, task, rollout.calls_by_turn(1))[0].valid
        for task, rollout in zip(asked, answers, strict=True)
    }
    return MemoryRun(memory, tuple(conversations), tuple(answers), right)
