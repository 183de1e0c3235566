"""TRL's GRPO trainer, fed with our rows: ids, masks and (B, T) advantages in, no text and no rewards.

One *train step* is one generation batch: all rollouts of the step, split into `minibatches` optimiser updates, gone
over `num_iterations` times. TRL recomputes the old logprobs under the training prompt when the batch arrives, so the
clipping is against the policy that entered the step, whatever prompt the rollouts were sampled under.

TRL's own baseline and rewards are not used (advantages come from seal.train.batch), so its groups carry no meaning here
and rows without advantage need not be computed: with beta 0 they are left out. The token count that the loss is divided
by is the batch's, whatever is left out.

The private code of TRL that is used here stands in seal.train.trl_private.
"""

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from peft import PeftModel
from transformers import PrinterCallback
from trl import GRPOTrainer
from trl.trainer.utils import add_fused_lm_head, pad, split_tensor_dict

from seal.policy.optim import copy_into
from seal.policy.shards import sharded
from seal.train.batch import Batch, TrainRow
from seal.train.optimise import CPU_ROWS, StepMetrics, Steps, UpdatePlan
from seal.train.ranks import Rank, gathered, rank
from seal.train.scoring import add_scored_head, can_share, scores_by_length, shared_scores

# TRL's name -> ours; of two with one name a loss has one
MEASURED = {
    "clip_ratio/region_mean": "clip_ratio",
    "cispo_clip_ratio": "clip_ratio",
    "kl": "kl",
    "entropy": "entropy",
}
SUMS = ("dapo", "cispo")  # losses that are a sum over tokens divided by a number of the whole batch


def rows_to_score(batch: Batch, every: bool = False) -> list[TrainRow]:
    """The rows that can move the policy, those with an advantage; or every one, where a loss counts the others too."""
    return [row for row in batch.rows if every or any(row.advantages)]


def rows_of_process(rows: list[TrainRow], parts: int, this: Rank, blank: TrainRow) -> list[TrainRow]:
    """This process's rows of each of `parts` minibatches, one after the other, as many as every other process has.

    The minibatches are those of a single process: TRL's own shuffle draws the same permutation there.
    """
    share: list[TrainRow] = []
    for minibatch in torch.randperm(len(rows)).chunk(parts):
        own = [rows[i] for i in minibatch[this.number :: this.world].tolist()]
        share += own + [blank] * (-(-len(minibatch) // this.world) - len(own))
    return share


class SealGRPOTrainer(GRPOTrainer):
    """GRPOTrainer that gets its rows from `steps.batch_of` through rollout_func, and its advantages with them."""

    def __init__(self, policy: Any, plan: UpdatePlan, steps: Steps, **kwargs):
        model, beta = policy.model, plan.params.beta
        self.batch_of, self.next_step = steps.batch_of, steps.first
        self.rows: list[TrainRow] = []
        self.divisor = 0
        self.micro_batch = plan.params.micro_batch
        self.losses: list[float] = []
        # TRL would load the reference of a full model from a path; ours is this model as it is now. Of a PEFT model
        # only the adapter is copied, which TRL does by itself.
        adapted = isinstance(model, PeftModel)
        reference = copy.deepcopy(model) if beta and not adapted else None
        if reference is not None:
            kwargs["args"].beta = 0.0
        super().__init__(
            model=model,
            processing_class=policy.tokenizer,
            reward_funcs=[_no_reward],
            rollout_func=SealGRPOTrainer._roll_out,
            **kwargs,
        )
        if reference is not None:
            copy_into(dict(reference.named_parameters()), plan.reference or {})
            self.beta, self.ref_model = beta, reference.eval()
        elif beta and plan.reference:  # TRL made the adapter "ref" a copy of the one that is trained
            own = dict(model.named_parameters())
            copy_into(own, {name.replace(".default.", ".ref."): value for name, value in plan.reference.items()})
        base = model.get_base_model() if adapted else model
        self.shares = can_share(base) and not sharded(base)  # whose processes must make equally many passes
        for patched in filter(None, (base, reference)):
            if self.shares:
                add_scored_head(patched, self.temperature)
            elif patched is reference:
                add_fused_lm_head(reference, temperature=self.temperature)
        self.wanted: torch.Tensor | None = None
        self.remove_callback(PrinterCallback)

    @staticmethod
    def _roll_out(prompts: list[str], trainer: "SealGRPOTrainer") -> dict[str, list]:
        """The step's rows (at most one a prompt) as ids, never text. What is random later is a function of the step."""
        step = trainer.next_step
        trainer.next_step += 1
        batch = trainer.batch_of(step)
        trainer.model.train()
        torch.manual_seed(trainer.args.seed + step)
        every = bool(trainer.beta) or trainer.loss_type not in SUMS
        rows, parts = rows_to_score(batch, every), trainer.args.steps_per_generation
        missing = -len(rows) % parts if rows else parts  # TRL cuts the rows into equal parts
        pad_ids = (trainer.processing_class.pad_token_id,)
        blank = TrainRow("", pad_ids, pad_ids, (0,), (0.0,), (0,), (0.0,))
        rows += [blank] * missing
        if rank().world > 1:
            rows = rows_of_process(rows, parts, rank(), blank)
        trainer.rows, trainer.divisor = rows, batch.divisor
        return {
            "prompt_ids": [list(row.prompt_ids) for row in rows],
            "completion_ids": [list(row.completion_ids) for row in rows],
            "logprobs": [list(row.logprobs) for row in rows],
            "env_mask": [list(row.loss_mask) for row in rows],
        }

    def _prepare_inputs(self, generation_batch):
        """TRL's; of several processes each has its rows in order already, and nothing is left to shuffle."""
        if rank().world == 1:
            return super()._prepare_inputs(generation_batch)
        every = self.args.steps_per_generation * self.num_iterations
        if self._step % every == 0 or self._buffered_inputs is None:
            batch = self._generate_and_score_completions(generation_batch)
            self._buffered_inputs = split_tensor_dict(batch, self.args.steps_per_generation)
        return self._buffered_inputs[self._step % self.args.steps_per_generation]

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self.wanted = None
        output = super()._generate_and_score_completions(inputs)
        advantages = pad([torch.tensor(row.advantages, dtype=torch.float32) for row in self.rows], padding_value=0.0)
        output["advantages"] = advantages.to(output["completion_ids"].device)
        output["num_items_in_batch"] = output["num_items_in_batch"].new_tensor(self.divisor)
        sampler, old = output.pop("sampling_per_token_logps"), output.get("old_per_token_logps")
        trained = (output["tool_mask"] * output["completion_mask"]).bool()
        if old is not None:
            gap = (sampler - old)[trained]
            parts = gathered((float(gap.mean()), len(gap)) if len(gap) else (0.0, 0))
            if tokens := sum(n for _, n in parts):
                self._metrics["train"]["sampler_gap"].append(sum(mean * (n / tokens) for mean, n in parts))
        return output

    def _get_per_token_logps_and_entropies(
        self, model, input_ids, attention_mask, logits_to_keep, batch_size=None, compute_entropy=False, **unused
    ):
        """TRL's, made for rows of unequal length that share prompts (see seal.train.scoring).

        Shapes as TRL has them: logprobs and entropies (B, logits_to_keep), 0 where no loss is asked for.
        """
        if self.shares:
            start = input_ids.shape[1] - logits_to_keep
            rows = [
                (row[:start][mask[:start] > 0].tolist(), row[start:][mask[start:] > 0].tolist())
                for row, mask in zip(input_ids, attention_mask, strict=True)
            ]
            wanted = self.wanted
            if wanted is None:
                masks = [torch.tensor(row.loss_mask) for row in self.rows]
                wanted = pad(masks, padding_value=0).to(input_ids.device)
            with self.accelerator.autocast():
                logps, entropies = shared_scores(model, *zip(*rows, strict=True), wanted)
            return logps, entropies if compute_entropy else None, None
        at_once = CPU_ROWS if input_ids.device.type == "cpu" else batch_size or len(input_ids)
        with self.accelerator.autocast():
            rows = (input_ids, attention_mask, logits_to_keep, at_once)
            return *scores_by_length(model, *rows, compute_entropy), None

    def _compute_loss(self, model, inputs):
        self.wanted = inputs["tool_mask"] * inputs["completion_mask"]
        return super()._compute_loss(model, inputs)

    def training_step(self, model, inputs, num_items_in_batch=None):
        """One update's minibatch, in parts of `micro_batch` rows whose losses add up to its own."""
        model.train()
        inputs = self._prepare_inputs(inputs)
        total, parts = 0.0, self._parts(inputs)
        for i, (part, share) in enumerate(parts):
            with nullcontext() if i + 1 == len(parts) else self.accelerator.no_sync(model):
                loss = self.compute_loss(model, part) * share
                self.accelerator.backward(loss)
            total += float(loss.detach())
        if len(parts) > 1:
            self._join([part for part, _ in parts])
        self._step += 1
        self.losses.append(total)
        return torch.tensor(total)

    def _parts(self, inputs: dict[str, Any]) -> list[tuple[dict[str, Any], float]]:
        """The minibatch in parts of at most `micro_batch` rows, equal prompts together, and each part's share of it."""
        rows = len(inputs["completion_ids"])
        if not 0 < self.micro_batch < rows:
            return [(inputs, 1.0)]
        prompts = inputs["prompt_ids"].tolist()
        parts = []
        for index in torch.tensor(sorted(range(rows), key=lambda i: prompts[i])).split(self.micro_batch):
            part = {
                key: value[index] if isinstance(value, torch.Tensor) and value.dim() else value
                for key, value in inputs.items()
            }
            parts.append((part, 1.0 if self.loss_type in SUMS else len(index) / rows))
        return parts

    def _join(self, parts: list[dict[str, Any]]) -> None:
        """What TRL noted of each part (a mean over its tokens, of all processes) as one note of the whole minibatch."""
        of_parts = torch.stack([(part["tool_mask"] * part["completion_mask"]).sum() for part in parts]).double()
        tokens = self.accelerator.reduce(of_parts, reduction="sum").tolist()
        for key in MEASURED:
            if values := self._metrics["train"].get(key):
                found = values[-len(parts) :]
                mean = sum(v * n for v, n in zip(found, tokens, strict=True) if n) / max(sum(tokens), 1.0)
                values[-len(parts) :] = [mean]

    def take_metrics(self, updates: int) -> StepMetrics:
        """What the updates of one train step reported, each a mean over its updates; forgets it.

        sampler_gap: how much likelier the sampled tokens were to the sampler than to the policy that entered the step,
        under the training prompt (nats a token), over all rows of the step. Of a step's own rows it is 0 but for
        rounding where both prompts are one; replayed rows were sampled by earlier policies, and what has been learned
        from them since makes it smaller, also below 0. None: not measured in this configuration.
        """
        logged, losses = self._metrics["train"], self.losses
        mean = {key: sum(values) / len(values) if values else None for key, values in logged.items()}
        metrics = {"loss": sum(losses) / updates, "sampler_gap": mean.get("sampler_gap")}
        metrics |= dict.fromkeys(MEASURED.values())
        metrics |= {MEASURED[key]: mean[key] for key in MEASURED if key in mean}
        self.losses = []
        logged.clear()
        everyone = gathered(metrics)
        return {key: _mean([m[key] for m in everyone if m[key] is not None]) for key in metrics}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _no_reward(prompts: Sequence[str], **_: Any) -> list[float]:
    """TRL wants a reward function; ours came with the rollouts."""
    return [0.0] * len(prompts)
