"""A module of Lightning, trained by its own Trainer for three steps.

    tb-memplugin fit examples/torch_lightning.py:step --on a100 --vary batch=64:65536

The Trainer makes the steps itself, so that `step` returns nothing. Loggers and checkpoints are off: they would write.
"""

from __future__ import annotations

from typing import Any

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):  # type: ignore[misc]
    """A network of two layers that returns its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.network = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def training_step(self, batch: Any, number: int) -> Any:
        (rows,) = batch
        loss = (self.network(rows) - rows).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters())


def step(batch: int = 64, width: int = 1024, precision: str = "bf16-mixed") -> None:
    """Train for three steps."""
    data = DataLoader(TensorDataset(torch.randn(3 * batch, width)), batch_size=batch)
    trainer = lightning.Trainer(
        accelerator="gpu", devices=1, precision=precision, max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Regression(width), data)
