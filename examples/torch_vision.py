"""Training of a model of torchvision, by its name.

    tb-memplugin fit examples/torch_vision.py:step --on h100 --vary name=resnet50,vit_b_16 --vary batch=8:2048

Models of detection and segmentation take other inputs: write a step for them as this one.
"""

from __future__ import annotations

from typing import Any

import torch
import torchvision


def step(
    batch: int = 64,
    name: str = "resnet50",
    size: int = 224,  # pixels of an edge
    classes: int = 1000,
    autocast: bool = True,
) -> tuple[Any, Any, Any]:
    """Return a training step."""
    model = torchvision.models.get_model(name, num_classes=classes).to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, classes, (batch,), device="cuda")

    def train() -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, train
