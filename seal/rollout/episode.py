"""The episode state machine: user turns, steps inside a turn, and the ways an episode can stop."""

from dataclasses import dataclass, replace
from typing import Any

from seal.core.types import Call, Mode, Result, Rollout, Step, Task, Tokens
from seal.env.base import Environment
from seal.interface.feedback import Repeats
from seal.interface.state import InterfaceState
from seal.interface.view import View
from seal.policy.base import Action, Observation, Policy
from seal.rollout.ledger import Ledger
from seal.tools.parse import format_calls, parse


@dataclass(frozen=True, slots=True)
class Request:
    """One rollout to play. With `start_turn` k, the turns before k are played by the gold program."""

    rollout_id: str
    task: Task
    sample: int
    seed: int
    mode: Mode = "off"
    dropped: str = ""
    start_turn: int = 0


class Episode:
    """One rollout in play: `observation()` and `take(action)` while `stop_reason` is empty, at last `rollout()`."""

    def __init__(self, env: Environment, policy: Policy, policy_hash: str, request: Request, interface: InterfaceState):
        self.request, self.stop_reason = request, ""
        self._env, self._policy, self._policy_hash = env, policy, policy_hash
        self._interface_hash = interface.hash if request.mode != "off" else "bare"
        self._view = View(env, request.task, interface, request.mode, request.dropped)
        self._bare = View(env, request.task, interface, "off") if request.mode != "off" else self._view
        self._session = env.open_live(request.task, request.seed)
        self._ledger = Ledger() if policy.codec else None
        self._steps: list[Step] = []
        self._results: tuple[Result, ...] = ()
        self._repeats = Repeats()
        self._memory: dict[str, Any] = {}
        self._turn, self._step, self._greeted = 0, 0, 0
        if policy.codec:
            prompts = [policy.codec.prompt(view.docs(0), view.hints()) for view in (self._view, self._bare)]
            self._ledger.add_shown(*prompts, turn=0)
        self._open_turn()
        while not self.stop_reason and self._turn < request.start_turn:
            self._play_gold()
        for text in self._session.greeting:
            self._say(text)
            self._greeted += 1

    def observation(self) -> Observation:
        context = self._ledger.context if self._ledger else []
        r, step = self.request, self._step - self._greeted
        return Observation(r.task, r.sample, r.seed, self._turn, step, self._results, context, self._memory)

    def take(self, action: Action) -> None:
        """Run what the policy said, and move on to the next step, the next turn, or the end."""
        if action.finish == "overflow":
            return self._stop("context_overflow")
        if self._ledger:
            self._ledger.add_sampled(action.ids, action.logprobs, self._turn)
        self._run(action.text, truncated=action.finish == "length")

    def rollout(self) -> Rollout:
        r = self.request
        return Rollout(
            rollout_id=r.rollout_id,
            task_id=r.task.task_id,
            sample=r.sample,
            seed=r.seed,
            mode=r.mode,
            policy_hash=self._policy_hash,
            interface_hash=self._interface_hash,
            steps=tuple(self._steps),
            stop_reason=self.stop_reason,
            dropped=r.dropped,
            tokens=self._ledger.tokens() if self._ledger else Tokens(),
        )

    def _run(self, text: str, truncated: bool = False) -> None:
        docs = self._env.docs(self.request.task, self._turn)
        parsed = parse(text, self._policy.format, docs)
        message = self._session.message_call(text) if parsed.end_of_turn else None
        if message:
            parsed = replace(parsed, calls=(message,), end_of_turn=False)
        results = tuple(self._execute(call) for call in parsed.calls)
        self._steps.append(Step(self._turn, self._step, text, parsed.calls, parsed.errors, results))
        self._results = results
        self._step += 1
        if truncated:
            self._stop("turn_token_limit")
        elif self._session.stop_reason:
            self._stop(self._session.stop_reason)
        elif parsed.end_of_turn:
            self._turn, self._step, self._results = self._turn + 1, 0, ()
            self._open_turn()
        elif self._step >= self._env.max_steps_per_turn:
            self._stop("step_limit")
        elif self._ledger and message:
            answer = self._policy.codec.user(results[0].shown, ())
            self._ledger.add_shown(answer, answer, self._turn)
        elif self._ledger:
            shown = [result.shown for result in results]
            shown += [self._view.shown_error(error, self._turn) for error in parsed.errors]
            raw = [result.raw if result.error_kind else result.shown for result in results]
            raw += [self._bare.shown_error(error, self._turn) for error in parsed.errors]
            encode = self._policy.codec.results
            self._ledger.add_shown(encode(shown), encode(raw), self._turn, recovery=shown != raw)

    def _execute(self, call: Call) -> Result:
        result = self._session.call(call)
        if not result.error_kind:
            return result
        shown = self._view.shown(call, result, self._turn, self._repeats.failed(call))
        return Result(result.raw, shown, result.error_kind)

    def _open_turn(self) -> None:
        task = self.request.task
        if self._turn == len(task.turns):
            self._stop("finished")
        elif self._ledger:
            message, encode = task.turns[self._turn].message, self._policy.codec.user
            views = [view.revealed(self._turn) for view in (self._view, self._bare)]
            self._ledger.add_shown(*(encode(message, revealed) for revealed in views), turn=self._turn)

    def _stop(self, reason: str) -> None:
        self.stop_reason = reason
        self._memory.clear()  # the rollout may wait long for the others of its batch

    def _play_gold(self) -> None:
        """The current turn by its gold program, one step a call, then the end of the turn."""
        gold = self.request.task.turns[self._turn].gold
        for calls in (*((call,) for call in gold), ()):
            self._say(format_calls(calls, self._policy.format))

    def _say(self, text: str) -> None:
        """Words put into the policy's mouth: read, never trained on."""
        if self._ledger:
            ids = self._policy.codec.encode_action(text)
            self._ledger.add_shown(ids, ids, self._turn)
        self._run(text)
