"""The storages that autograd's graph keeps for a backward pass, whether or not that comes."""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from tb_memplugin.torch_fit.known_values import tensors_in

GRAPH_FRAME = "torch::autograd::deleteNode(torch::autograd::Node*)"  # where a node's tensors end with it
PREFIX = "_saved_"  # of the attributes of a node of the graph that hold what it saved


class SavedTensors:
    """The storages that nodes of the graph keep, by address.

    The graph gets the node of an operation when the operation has returned, so the node is read at the next one. Where
    there are hooks, nodes keep what these return instead.
    """

    def __init__(self) -> None:
        self.hooks = 0  # that are active
        self._storages: set[int] = set()
        self._results: list[weakref.ref[torch.Tensor]] = []
        self._ends_elsewhere = False

    def expect(self, made: Any) -> None:
        """Note the results of an operation, whose node has yet to come."""
        if torch.is_grad_enabled() and not self.hooks:
            self._results += [weakref.ref(one) for one in tensors_in(made)]

    def follow(self, func: Any) -> None:
        """Read the nodes of the last operation's results, before the next operation."""
        if func is torch.ops.aten.detach.default:
            return  # maybe the graph's own, of a result that it keeps, before the node is set
        results, self._results = self._results, []
        for result in results:
            with suppress(RuntimeError):  # of autograd, as for a view whose graph a change in place has broken
                if (tensor := result()) is not None and (node := tensor.grad_fn) is not None:
                    self._add(_saved_by(node))

    def add_by_hand(self, tensors: Iterable[Any]) -> None:
        """Note what a function written in Python saves."""
        if not self.hooks:
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
            with suppress(NotImplementedError):  # a sparse tensor of rows has no storage
                self._storages.add(tensor.untyped_storage()._cdata)


def _saved_by(node: object) -> Iterator[torch.Tensor]:
    """Yield the tensors that a node keeps."""
    for name in dir(type(node)):
        if name.startswith(PREFIX) and "_sym_" not in name:
            yield from tensors_in(getattr(node, name))
