"""Values that a trace knows: of small tensors of the GPU that are computed from the program's own numbers.

Loops and branches read them, such as which sequences are not finished. Parameters, activations and random numbers have
no values. Beside a tensor that has some, those that it meets without values count as zeros.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map

aten = torch.ops.aten
Tensors = Sequence[torch.Tensor]

MAX_NUMBERS = 1 << 18  # elements of integers and truth values
MAX_REALS = 256  # of floating-point numbers, as parameters and activations have more and decide nothing
SHAPED = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}  # by a tensor, of other values
FILLING = (aten.fill_.Scalar, aten.fill_.Tensor, aten.zero_.default, aten.copy_.default)  # whatever was there before


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of nested arguments; of a sparse one, its indices and values."""
    if isinstance(values, torch.Tensor):
        yield from (values._indices(), values._values()) if values.layout is torch.sparse_coo else (values,)
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from tensors_in(value)
    elif isinstance(values, dict):
        yield from tensors_in(list(values.values()))


def is_small(tensor: torch.Tensor) -> bool:
    is_real = tensor.is_floating_point() or tensor.is_complex()
    return bool(tensor.numel() <= (MAX_REALS if is_real else MAX_NUMBERS))


class KnownValues:
    """The contents of storages that a trace knows, by the address of the storage without memory."""

    def __init__(self) -> None:
        self._contents: dict[int, Any] = {}
        self._assumed: set[int] = set()  # of them, those that depend on zeros in the place of unknown values

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return a tensor with its values, on the CPU; None where they are unknown. Changes to it change the values."""
        if not tensor.is_meta:
            return tensor
        content = self._contents.get(tensor.untyped_storage()._cdata)
        return None if content is None else _laid_out(content, tensor)

    def is_assumed(self, tensor: torch.Tensor) -> bool:
        """Return whether known values depend on unknown ones, which count as zeros."""
        return tensor.is_meta and tensor.untyped_storage()._cdata in self._assumed

    def forget(self, key: int) -> None:
        """Forget the values of a storage."""
        self._contents.pop(key, None)
        self._assumed.discard(key)

    def follow(self, func: Any, args: Any, kwargs: dict[str, Any], inputs: Tensors, made: Any) -> None:
        """Learn the values of what an operation made or changed, where those of its inputs are known.

        What a collective changes keeps this process's values, as the others' are unknown.
        """
        if func.namespace == "c10d":
            self._assume(inputs)
        changed = _changed(func, args, kwargs) if func._schema.is_mutable else []
        results = [one for one in tensors_in(made) if self._is_new(one)]
        if not changed and not results:
            return
        sources = inputs
        if func in FILLING and changed[0].is_meta and _covers(changed[0]):
            self._start(changed[0])
            self._assumed.discard(changed[0].untyped_storage()._cdata)
            sources = inputs[1:]
        if not self._computes(func, sources, changed, results):
            self._forget(changed)
            return
        is_assumed = any(self._is_new(one) or self.is_assumed(one) for one in sources) and func._opname not in SHAPED
        try:
            real_args, real_kwargs = tree_map(self._real, (args, kwargs))
            values = func(*real_args, **real_kwargs)
        except Exception:  # zeros may be out of bounds, and the CPU may lack a kernel: the trace goes on without values
            self._forget(changed)
            return
        for one, value in zip(tensors_in(made), tensors_in(values), strict=False):
            if self._is_new(one) and one.shape == value.shape:
                self._start(one)
                _laid_out(self._contents[one.untyped_storage()._cdata], one).copy_(value)
        if is_assumed:
            self._assume((*results, *changed))

    def _computes(self, func: Any, inputs: Tensors, changed: Tensors, results: Tensors) -> bool:
        """Return whether values of an operation follow from known ones."""
        if func.namespace != "aten" or torch.Tag.nondeterministic_seeded in func.tags:
            return False
        if any(self._is_new(one) for one in changed) or not all(map(is_small, (*inputs, *results))):
            return False
        meta = [one for one in inputs if one.is_meta]
        return not meta or func._opname in SHAPED or not all(map(self._is_new, meta))

    def _is_new(self, tensor: torch.Tensor) -> bool:
        """Return whether the values of a tensor are unknown."""
        return tensor.is_meta and tensor.untyped_storage()._cdata not in self._contents

    def _start(self, tensor: torch.Tensor) -> None:
        """Begin to know the values of a tensor: zeros."""
        if is_small(tensor):
            storage = tensor.untyped_storage()
            content = torch.zeros(storage.nbytes(), dtype=torch.uint8).untyped_storage()
            self._contents[storage._cdata] = content

    def _assume(self, tensors: Tensors) -> None:
        self._assumed |= {one.untyped_storage()._cdata for one in tensors if one.is_meta} & self._contents.keys()

    def _forget(self, tensors: Tensors) -> None:
        for one in tensors:
            if one.is_meta:
                self.forget(one.untyped_storage()._cdata)

    def _real(self, value: Any) -> Any:
        """Return an argument with values, zeros where they are unknown."""
        if isinstance(value, torch.Tensor):
            known = self.of(value)
            return torch.zeros(value.shape, dtype=value.dtype) if known is None else known
        return torch.device("cpu") if isinstance(value, torch.device) else value


def _laid_out(content: Any, tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=tensor.dtype).set_(content, tensor.storage_offset(), tensor.shape, tensor.stride())


def _covers(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is all of its storage."""
    return bool(tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes())


def _changed(func: Any, args: Any, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Return the arguments that an operation writes to."""
    found = list[torch.Tensor]()
    for number, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[number] if number < len(args) else kwargs.get(argument.name)
            found += tensors_in(value)
    return found
