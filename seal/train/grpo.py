"""GRPO over the steps of a round: the settings TRL gets, and what is left behind. Imports torch and TRL."""

import os
import tempfile
import warnings
from contextlib import contextmanager
from typing import Any

import torch
from datasets import Dataset
from peft import PeftModel
from transformers import TrainerCallback
from trl import GRPOConfig

from seal.core.errors import ParamError
from seal.policy.shards import accelerate_aside, sharded, shards
from seal.train.optimise import Steps, UpdatePlan
from seal.train.ranks import rank
from seal.train.trainer import SealGRPOTrainer


class _AfterStep(TrainerCallback):
    """Says that a train step is finished after its last update."""

    trainer: SealGRPOTrainer

    def __init__(self, steps: Steps, updates: int):
        self.steps, self.updates = steps, updates

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % self.updates == 0:
            step = self.steps.first + state.global_step // self.updates - 1
            self.steps.finished(step, self.trainer.take_metrics(self.updates))


def config(plan: UpdatePlan, steps: int, on_cpu: bool, output_dir: str) -> GRPOConfig:
    """GRPOConfig of `steps` train steps without logging, saving, checkpointing of activations or progress bars."""
    params = plan.params
    rows = -(-plan.rows // (params.minibatches * rank().world))
    return GRPOConfig(
        output_dir=output_dir,
        per_device_train_batch_size=rows,
        steps_per_generation=params.minibatches,
        num_generations=params.minibatches * rows * rank().world,
        num_iterations=params.num_iterations,
        max_steps=steps * plan.updates_per_step,
        learning_rate=params.lr,
        lr_scheduler_type="constant",
        max_grad_norm=params.max_grad_norm,
        epsilon=params.epsilon,
        epsilon_high=params.epsilon_high or params.epsilon,
        beta=params.beta,
        use_bias_correction_kl=False,  # the paper's low-variance estimator as it is
        temperature=plan.temperature or 1.0,
        loss_type=params.loss,
        scale_rewards="none",
        shuffle_dataset=False,
        seed=plan.seed % 2**31,
        use_cpu=on_cpu,
        bf16=False,
        gradient_checkpointing=False,
        ddp_find_unused_parameters=False,  # a prompt that is read once is a forward pass of its own,
        ddp_broadcast_buffers=False,  # and processes have different numbers of them
        dataloader_pin_memory=False,
        logging_strategy="no",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


@contextmanager
def _unpatched(model: torch.nn.Module):
    """Leave the model as it came but for its weights: no fused forward, no reference adapter, in eval mode."""
    adapted = isinstance(model, PeftModel)
    base = model.get_base_model() if adapted else model
    own = {key: value for key, value in vars(base).items() if key == "forward"}
    try:
        yield
    finally:
        vars(base).pop("forward", None)
        vars(base).update(own)
        if adapted and "ref" in model.peft_config:
            model.delete_adapter("ref")
        model.eval()


def train(policy: Any, plan: UpdatePlan, steps: Steps, optimizer: torch.optim.Optimizer) -> None:
    """GRPO: an `Optimise` (seal.train.optimise). The model is a transformers causal LM, or a PEFT model around one."""
    model, updates, left = policy.model, plan.updates_per_step, plan.params.steps - steps.first
    if left <= 0:
        steps.restore()
        return
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # rollout_func is experimental in the pinned TRL: known
    callback = _AfterStep(steps, updates)

    def rate(update: int) -> float:
        return plan.rate(steps.first * updates + update)

    if shards() > 1 and not sharded(model):
        raise ParamError("FSDP", "a model that was not sharded", "an hf policy with train: lora, or --multi_gpu")
    with tempfile.TemporaryDirectory() as scratch, _unpatched(model), accelerate_aside(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # TRL sets an option that transformers has renamed
        trainer = SealGRPOTrainer(
            policy,
            plan,
            steps,
            args=config(plan, left, next(model.parameters()).device.type == "cpu", scratch),
            train_dataset=Dataset.from_dict({"prompt": [str(i) for i in range(left)]}),
            optimizers=(optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, rate)),
            callbacks=[callback],
        )
        callback.trainer = trainer
        steps.restore()
        trainer.train()
