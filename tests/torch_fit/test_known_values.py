"""Values that a trace reads: the same as on the CPU where the program's own numbers decide them, else assumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch")

import torch

from tb_memplugin.capture import torch_preview
from tb_memplugin.torch_fit.known_values import MAX_NUMBERS

Program = Callable[[str], Any]


def unfinished(device: str) -> Any:
    """Generate until every sequence has its length, as Transformers does."""
    left, lengths = torch.ones(4, dtype=torch.long, device=device), torch.tensor([3, 5, 2, 4], device=device)
    turn = 0
    while left.max() != 0:
        turn += 1
        left = left & ~(lengths <= turn)
    return turn


def of_views(device: str) -> Any:
    grid = torch.zeros(4, 6, dtype=torch.int32, device=device)
    grid[1:3, ::2] = 7
    row = grid.t().contiguous()[2]
    row += 1
    grid.view(-1)[5].fill_(9)
    return grid.tolist(), row.sum().item(), grid.cpu().numpy().max()


def masked(device: str) -> Any:
    numbers = torch.arange(12, device=device).reshape(3, 4)
    mask = numbers % 3 == 0
    taken, where = numbers[mask], mask.nonzero()
    numbers[numbers > 9] = -1
    return (
        taken.shape,
        taken.tolist(),
        where.tolist(),
        torch.masked_select(numbers, mask).tolist(),
        numbers.min().item(),
    )


def counted(device: str) -> Any:
    found, counts = torch.unique(torch.tensor([3, 1, 3, 3], device=device), return_counts=True)
    return found.tolist(), counts.tolist(), torch.equal(found, torch.tensor([1, 3], device=device))


def scaled(device: str) -> Any:
    scale = torch.full((), 65536.0, device=device)
    scale.mul_(0.5)
    return scale.item(), (1 / scale).item(), bool(scale.isfinite())


def moved(device: str) -> Any:
    numbers = torch.tensor([1, 2, 3]).to(device)
    other = torch.empty(3, dtype=torch.long, device=device).copy_(numbers)
    other.zero_()
    made = torch.as_tensor([4], device=device), torch.tensor(data=[5], device=device)
    return numbers.tolist(), other.tolist(), [one.item() for one in made], numbers.clone().any().item()


@pytest.mark.parametrize("program", [unfinished, of_views, masked, counted, scaled, moved])
def test_values_of_the_programs_own_numbers_are_those_of_the_cpu(program: Program) -> None:
    found = list[Any]()
    traced = torch_preview(lambda: found.append(program("cuda")))
    assert found == [program("cpu")]
    assert not traced.assumptions.found


def test_a_mask_selects_what_it_says_from_values_that_are_unknown() -> None:
    def run() -> None:
        activations = torch.randn(8, 1024, device="cuda")
        chosen = activations[torch.arange(8, device="cuda") < 3]
        assert chosen.shape == (3, 1024)

    assert not torch_preview(run).assumptions.found


@pytest.mark.parametrize(
    "unknown",
    [
        lambda: torch.randint(5, 9, (4,), device="cuda"),
        lambda: torch.ones(4, dtype=torch.long, device="cuda").random_(5, 9),
        lambda: torch.ones(4, dtype=torch.long, device="cuda").copy_(torch.randint(5, 9, (4,), device="cuda")),
        lambda: torch.ones(MAX_NUMBERS + 1, dtype=torch.long, device="cuda"),
        lambda: torch.ones(300, device="cuda") * torch.randn(300, device="cuda"),
    ],
)
def test_other_values_count_as_zero_and_the_answer_says_so(unknown: Callable[[], Any]) -> None:
    def run() -> None:
        assert unknown().max().item() == 0

    assert list(torch_preview(run).assumptions.found) == ["A value that is read on the GPU counts as 0"]


def test_beside_a_known_value_an_unknown_one_counts_as_zero() -> None:
    def run() -> None:
        is_last = torch.ones(4, dtype=torch.bool, device="cuda")
        ends = torch.randint(0, 9, (4,), device="cuda") == 5
        assert (is_last | ends).all() and not (is_last & ends).any()

    assert sorted(torch_preview(run).assumptions.found) == [
        "A value that is read on the GPU counts as 0",
        "A value that is read on the GPU counts as 1",
    ]


def test_what_cannot_be_computed_of_unknown_values_is_unknown_too() -> None:
    """With zeros, this index is out of bounds."""

    def run() -> None:
        lengths = torch.randint(1, 4, (2,), device="cuda")
        table = torch.arange(6, device="cuda")
        assert table[torch.tensor([6, 6], device="cuda") - lengths].sum().item() == 0

    assert len(torch_preview(run).assumptions.found) == 1


def test_values_of_a_tensor_that_is_gone_are_forgotten() -> None:
    sizes = list[int]()

    def run() -> None:
        from torch.utils._python_dispatch import _get_current_dispatch_mode

        values = _get_current_dispatch_mode().values
        for _ in range(50):
            assert torch.ones(1000, dtype=torch.long, device="cuda").sum().item() == 1000
            sizes.append(len(values._contents))

    torch_preview(run)
    assert max(sizes) <= 2
