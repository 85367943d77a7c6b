"""Tensors that autograd's graph keeps are activations, also where no backward pass comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch")

import torch
from support.torch_training import read_snapshot
from torch.utils.checkpoint import checkpoint

from tb_memplugin.analysis.ownership.torch_roles import torch_roles
from tb_memplugin.capture import torch_preview
from tb_memplugin.model.kinds import Role

SIZE = 4 * 1024  # bytes of a tensor


def roles_of(program: Callable[[], Any]) -> Counter[str]:
    """Return how many tensors of SIZE bytes have each role; the program's first is its input."""
    recording = read_snapshot(torch_preview(program).snapshot())
    rows = recording.allocations
    return Counter(Role(role).name for role in torch_roles(recording)[rows.requested == SIZE])


def given() -> torch.Tensor:
    return torch.empty(1024, device="cuda", requires_grad=True)


def forward() -> None:
    """Keep the results of `exp`, `sigmoid` and the difference; not the sum and the product."""
    x = given()
    scaled = (x.exp() + 1).sigmoid()
    (scaled - 1).mul(scaled).sum()


class Doubled(torch.autograd.Function):  # type: ignore[misc]
    """A function whose backward pass needs its result, but not what it computes on the way."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        half = x * 4
        result = half / 2
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0] * 2


def written_by_hand() -> None:
    doubled = Doubled.apply(given())
    doubled.sum()


def in_half() -> None:
    weight = torch.nn.Parameter(torch.empty(64, 32, device="cuda"))  # its cast to bfloat16 has SIZE bytes
    x = torch.empty(8, 32, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        torch.nn.functional.linear(x, weight).sum()


def checkpointed() -> None:
    """Keep the input of a block alone, which is larger."""

    def block(x: torch.Tensor) -> torch.Tensor:
        return x[:1024].exp().sigmoid().square()

    checkpoint(block, torch.empty(2048, device="cuda", requires_grad=True), use_reentrant=False).sum()


def on_the_cpu() -> None:
    with torch.autograd.graph.save_on_cpu():
        given().exp().sum()


def without_graph() -> None:
    with torch.no_grad():
        forward()


@pytest.mark.parametrize(
    ("program", "activations"),
    [(forward, 3), (written_by_hand, 1), (in_half, 0), (checkpointed, 0), (on_the_cpu, 0), (without_graph, 0)],
)
def test_a_forward_pass_keeps_what_its_graph_does(program: Callable[[], Any], activations: int) -> None:
    assert roles_of(program)["ACTIVATION"] == activations


def test_a_backward_pass_changes_no_role() -> None:
    def program() -> None:
        x = given()
        scaled = (x.exp() + 1).sigmoid()
        (scaled - 1).mul(scaled).sum().backward()

    assert roles_of(program)["ACTIVATION"] == roles_of(forward)["ACTIVATION"]


def test_a_tensor_changed_in_place_does_not_end_the_trace() -> None:
    def program() -> None:
        kept = given().exp()
        kept.mul_(2)
        kept.sum()

    assert roles_of(program)["ACTIVATION"] == 1  # the result of exp, whose node still has it
