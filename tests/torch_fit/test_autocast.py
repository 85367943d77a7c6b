"""Casts of parameters are kept in a trace as PyTorch's own autocast keeps them on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch")

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tb_memplugin.capture import torch_preview

SIZE = 2048  # bytes of a cast weight


class CountedCasts(TorchDispatchMode):  # type: ignore[misc]
    """Counts the casts of a weight."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.count += func._opname in ("to", "_to_copy") and made.nbytes == SIZE
        return made


def thrice(device: str, block: Callable[[], AbstractContextManager[Any]]) -> bool:
    """Use a weight three times in a block, and then once with gradients; return whether that has one."""
    weight, values = torch.nn.Parameter(torch.empty(32, 32, device=device)), torch.empty(4, 32, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        with block():
            for _ in range(3):
                torch.nn.functional.linear(values, weight)
        return bool(torch.nn.functional.linear(values, weight).requires_grad)


@pytest.mark.parametrize("block", [nullcontext, torch.no_grad, torch.inference_mode])
def test_a_weight_is_cast_as_often_as_on_the_cpu(block: Callable[[], AbstractContextManager[Any]]) -> None:
    with CountedCasts() as real:
        has_gradient = thrice("cpu", block)
    found = list[bool]()
    log = torch_preview(lambda: found.append(thrice("cuda", block))).log
    assert sum(event.size == SIZE for event in log.events) == real.count
    assert found == [has_gradient]
