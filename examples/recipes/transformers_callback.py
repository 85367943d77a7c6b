"""Watch the GPU memory of a `Trainer` of Hugging Face Transformers."""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from tb_memplugin import capture


class MarkSteps(TrainerCallback):
    """Marks each training step in the memory curve."""

    def __init__(self, watched: capture.Watch) -> None:
        self.watched = watched

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.watched.step(state.global_step)


def main(logdir: str, steps: int = 20) -> None:
    model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=32, n_embd=32, n_layer=1, n_head=2))
    tokens = torch.randint(0, 256, (4 * steps, 32))
    examples = [{"input_ids": row, "labels": row} for row in tokens]

    with capture.watch(logdir) as watched, tempfile.TemporaryDirectory() as output:
        arguments = TrainingArguments(
            output, max_steps=steps, per_device_train_batch_size=4, report_to="none", save_strategy="no"
        )
        Trainer(model, arguments, train_dataset=examples, callbacks=[MarkSteps(watched)]).train()


if __name__ == "__main__":
    main(sys.argv[1])
