"""Watch the GPU memory of a `Trainer` of Lightning."""

from __future__ import annotations

import sys
from typing import Any

import lightning
import torch

from tb_memplugin import capture


class MarkSteps(lightning.Callback):
    """Marks each training step in the memory curve."""

    def __init__(self, watched: capture.Watch) -> None:
        self.watched = watched

    def on_train_batch_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        self.watched.step(trainer.global_step)


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        return torch.nn.functional.mse_loss(self.layers(batch), batch.sum(1, keepdim=True))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters())


def main(logdir: str, steps: int = 20) -> None:
    batches = torch.utils.data.DataLoader(torch.randn(32 * steps, 64), batch_size=32)

    with capture.watch(logdir) as watched:
        trainer = lightning.Trainer(
            max_steps=steps, callbacks=[MarkSteps(watched)], logger=False, enable_checkpointing=False
        )
        trainer.fit(Model(), batches)


if __name__ == "__main__":
    main(sys.argv[1])
