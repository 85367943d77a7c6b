"""Kernels that are not PyTorch's own in a trace: with a function of shapes, without one, and Triton's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch")

import torch

from tb_memplugin.capture import torch_preview
from tb_memplugin.errors import InputError
from tb_memplugin.torch_fit.storages import SPARSE

Define = Callable[..., Any]


@pytest.fixture
def define() -> Iterator[Define]:
    """Define an operator `mine::NAME` as a package does: of a tensor, with a function of shapes or without."""
    with torch.library._scoped_library("mine", "FRAGMENT") as library:

        def defined(name: str, shapes: Callable[[Any], Any] | None) -> Any:
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, lambda x: x, "CUDA")
            if shapes is not None:
                torch.library.register_fake(f"mine::{name}", shapes, lib=library)
            return getattr(torch.ops.mine, name)

        yield defined


def test_results_have_the_shapes_that_a_package_declares(define: Define) -> None:
    half = define("half", lambda x: x.new_empty(x.shape[0] // 2))
    kept = list[Any]()
    traced = torch_preview(lambda: kept.append(half(torch.randn(4096, device="cuda"))))
    assert kept[0].shape == (2048,)
    assert [one.size for one in traced.log.events if one.size > 0] == [4096 * 4, 2048 * 4]
    assert not traced.assumptions.found


def test_of_results_whose_number_depends_on_values_there_are_as_many_as_of_inputs(define: Define) -> None:
    keep = define("keep", lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size()))
    kept = list[Any]()
    traced = torch_preview(lambda: kept.append(keep(torch.randn(300, device="cuda"))))
    assert kept[0].shape == (300,)
    [assumed] = traced.assumptions.found.values()
    assert str(assumed).startswith("mine::keep is assumed to keep all of its inputs at test_custom_kernels.py:")


def test_an_operator_without_shapes_is_an_error_with_its_line(define: Define) -> None:
    unknown = define("unknown", None)
    with pytest.raises(InputError, match=r"mine::unknown .*test_custom_kernels.py:\d+: .*register_fake") as raised:
        torch_preview(lambda: unknown(torch.randn(300, device="cuda")))
    assert "\n" not in str(raised.value)


def test_a_custom_operator_without_shapes_is_an_error_too() -> None:
    double = torch.library.custom_op("mine::double", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(InputError, match="mine::double"):
        torch_preview(lambda: double(torch.randn(300, device="cuda")))


@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="of newer PyTorch")
def test_groups_of_float32_are_multiplied() -> None:
    def run() -> None:
        one, other = torch.randn(64, 32, device="cuda"), torch.randn(4, 32, 16, device="cuda")
        ends = torch.tensor([16, 32, 48, 64], dtype=torch.int32, device="cuda")
        made = torch._grouped_mm(one, other, offs=ends)
        assert (made.shape, made.dtype) == ((64, 16), torch.float32)

    torch_preview(run)


def test_a_kernel_of_triton_is_left_out() -> None:
    triton = pytest.importorskip("triton")

    def add_one(pointer: Any) -> None: ...

    def run() -> None:
        kernel = triton.jit(add_one)
        kernel[(4,)](torch.empty(1024, device="cuda"))

    [assumed] = torch_preview(run).assumptions.found.values()
    assert "Triton" in assumed.text


@pytest.mark.parametrize("name", ["SGD", "SparseAdam"])
def test_sparse_gradients_have_their_indices_and_values(name: str) -> None:
    def run() -> None:
        embedding = torch.nn.Embedding(10_000, 64, sparse=True).cuda()
        optimizer = getattr(torch.optim, name)(embedding.parameters(), lr=0.1)
        for _ in range(2):
            embedding(torch.zeros(1024, dtype=torch.long, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    traced = torch_preview(run)
    sizes = Counter(event.size for event in traced.log.events)
    assert sizes[10_000 * 64 * 4] == (1 if name == "SGD" else 3)  # the weight, and two moments
    assert sizes[1024 * 64 * 4] >= 2 and sizes[1024 * 8] >= 2
    assert SPARSE in traced.assumptions.found
