"""GRPO over the steps of a round: the settings TRL gets, and what is left behind. Imports torch and TRL."""

import os
import tempfile
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig

from seal.core.errors import ParamError
from seal.policy.shards import accelerate_aside, sharded, shards
from seal.train.batch import Batch
from seal.train.ranks import rank
from seal.train.settings import OptimSettings, StepMetrics
from seal.train.trainer import SealGRPOTrainer


class _AfterStep(TrainerCallback):
    """Calls back after the last update of each train step."""

    def __init__(self, first_step: int, updates: int, after_step: Callable[[int, StepMetrics], None]):
        self.first_step, self.updates, self.after_step = first_step, updates, after_step
        self.trainer: SealGRPOTrainer | None = None

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % self.updates == 0:
            step = self.first_step + state.global_step // self.updates - 1
            self.after_step(step, self.trainer.take_metrics(self.updates))


def config(settings: OptimSettings, steps: int, on_cpu: bool, output_dir: str) -> GRPOConfig:
    """GRPOConfig of `steps` train steps without logging, saving, checkpointing of activations or progress bars."""
    rows = -(-settings.rows // (settings.minibatches * rank().world))
    return GRPOConfig(
        output_dir=output_dir,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=1,
        steps_per_generation=settings.minibatches,
        num_generations=settings.minibatches * rows * rank().world,
        num_iterations=settings.num_iterations,
        max_steps=steps * settings.minibatches * settings.num_iterations,
        learning_rate=settings.lr,
        lr_scheduler_type="constant",
        max_grad_norm=settings.max_grad_norm,
        epsilon=settings.epsilon,
        epsilon_high=settings.epsilon_high or settings.epsilon,
        beta=settings.beta,
        use_bias_correction_kl=False,  # the paper's low-variance estimator as it is
        temperature=settings.temperature or 1.0,
        loss_type=settings.loss,
        importance_sampling_level="sequence" if settings.loss == "luspo" else "token",
        scale_rewards="none",
        shuffle_dataset=False,
        seed=settings.seed % 2**31,
        use_cpu=on_cpu,
        bf16=False,
        gradient_checkpointing=False,
        ddp_find_unused_parameters=False,  # a prompt that is read once is a forward pass of its own,
        ddp_broadcast_buffers=False,  # and processes have different numbers of them
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        logging_strategy="no",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


@contextmanager
def _unpatched(model: torch.nn.Module):
    """Leave the model as it came but for its weights: no fused forward, no reference adapter, in eval mode."""
    base = model.get_base_model() if hasattr(model, "peft_config") else model
    own = {key: value for key, value in vars(base).items() if key == "forward"}
    try:
        yield
    finally:
        vars(base).pop("forward", None)
        vars(base).update(own)
        if "ref" in getattr(model, "peft_config", ()):
            model.delete_adapter("ref")
        model.eval()


def train(
    model: torch.nn.Module,
    tokenizer: Any,
    batch_of_step: Callable[[int], Batch],
    settings: OptimSettings,
    optimizer: torch.optim.Optimizer,
    after_step: Callable[[int, StepMetrics], None],
    first_step: int = 0,
    restore: Callable[[], None] | None = None,
) -> None:
    """GRPO: an `Optimise` (seal.train.settings). `model`: a transformers causal LM, or a PEFT model around one."""
    steps = settings.steps - first_step
    if steps <= 0:
        if restore:
            restore()
        return
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # rollout_func is experimental in the pinned TRL: known
    updates = settings.minibatches * settings.num_iterations
    callback = _AfterStep(first_step, updates, after_step)

    def rate(update: int) -> float:
        return settings.rate(first_step * updates + update)

    if shards() > 1 and not sharded(model):
        raise ParamError("FSDP", "a model that was not sharded", "an hf policy with train: lora, or --multi_gpu")
    with tempfile.TemporaryDirectory() as scratch, _unpatched(model), accelerate_aside(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # TRL sets an option that transformers has renamed
        trainer = SealGRPOTrainer(
            model,
            tokenizer,
            batch_of_step,
            settings,
            first_step,
            args=config(settings, steps, next(model.parameters()).device.type == "cpu", scratch),
            train_dataset=Dataset.from_dict({"prompt": [str(i) for i in range(steps)]}),
            optimizers=(optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, rate)),
            callbacks=[callback],
        )
        callback.trainer = trainer
        if restore:
            restore()
        trainer.train()
