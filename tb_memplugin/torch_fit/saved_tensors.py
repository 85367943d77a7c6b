"""Which storages autograd's graph keeps for a backward pass, whether that comes or not."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from tb_memplugin.torch_fit.known_values import tensors_in

GRAPH_FRAME = "torch::autograd::deleteNode(torch::autograd::Node*)"  # where a node's tensors end with it
PREFIX = "_saved_"  # of the attributes of a node of the graph that hold what it saved


class SavedTensors:
    """The storages that nodes of the graph keep, by address.

    The graph gets the node of an operation when the operation has returned, so the node is read at the next one.
    """

    def __init__(self) -> None:
        self._storages: set[int] = set()
        self._results: list[weakref.ref[torch.Tensor]] = []
        self._ends_elsewhere = False

    def expect(self, made: Any) -> None:
        """Note the results of an operation, whose node has yet to come."""
        if _keeps_graph():
            self._results += [weakref.ref(one) for one in tensors_in(made)]

    def follow(self, func: Any) -> None:
        """Read the nodes of the last operation's results, before the next operation."""
        if func is torch.ops.aten.detach.default:
            return  # maybe the graph's own, of a result that it keeps, before the node is set
        results, self._results = self._results, []
        for result in results:
            if (tensor := result()) is not None and (node := tensor.grad_fn) is not None:
                self._add(_saved_by(node))

    def add_by_hand(self, tensors: Iterable[Any]) -> None:
        """Note what a function written in Python saves."""
        if _keeps_graph(is_written=True):
            self._add(tensors_in(tensors))

    @contextmanager
    def ending_elsewhere(self) -> Iterator[None]:
        """Free storages that something else kept longer than the graph."""
        self._ends_elsewhere = True
        try:
            yield
        finally:
            self._ends_elsewhere = False

    def end(self, storage: int) -> tuple[str, ...]:
        """Return the functions that free a storage, besides those of Python."""
        kept = storage in self._storages and not self._ends_elsewhere
        self._storages.discard(storage)
        return (GRAPH_FRAME,) if kept else ()

    def _add(self, tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            tensor = getattr(tensor, "_local_tensor", tensor)  # of a DTensor
            self._storages.add(tensor.untyped_storage()._cdata)


def _keeps_graph(is_written: bool = False) -> bool:
    """Return whether operations keep tensors themselves: with hooks, they keep what these return.

    Functions written in Python run without a graph of their own.
    """
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return hooks is None and (is_written or torch.is_grad_enabled())


@cache
def _attributes(kind: Hashable) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith(PREFIX) and "_sym_" not in name)


def _saved_by(node: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors that a node keeps."""
    kind: Hashable = type(node)
    for name in _attributes(kind):
        try:
            yield from tensors_in(getattr(node, name))
        except RuntimeError:  # it was changed in place, so that no backward pass can use it
            continue
