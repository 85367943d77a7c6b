"""Scoped memory, the scratch space of an instruction, and on-chip memory of the Pallas kernels of a TPU program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.protos.hlo_fields import HloProto
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import MAX_BYTES
from tb_memplugin.readers.hlo.module.shapes import shape_text
from tb_memplugin.readers.hlo.module.tables import CONFIGS, HloModule

if TYPE_CHECKING:
    from tb_memplugin.model.out_of_memory import KernelMemory

SCOPED = re.compile(rb'"used_scoped_memory_configs":\[\{([^\[\]]*)\}\]')
SCOPED_FIELD = re.compile(rb'"(memory_space|size)":"?(\d{1,18})"?')
MAX_ENTRY = 200  # characters of an entry; real entries have fewer than 60


class ScopedMemory(NamedTuple):
    scoped_bytes: int
    scoped_instruction: str


def scoped_memory(module: HloModule, space: int) -> ScopedMemory:
    """Return the largest scoped allocation of a memory space and its instruction; (0, "") where there is none.

    TPU programs record it in the instructions' backend configuration, which is JSON.
    """
    most, at = 0, 0
    if space == 0:  # main memory has no scoped allocations, and the search would be slow in its long programs
        return ScopedMemory(0, "")
    for found in SCOPED.finditer(module.data):
        for of_space, size in _sizes(found[1]):
            if of_space == space and size > most:
                most, at = size, found.start()
    if not most:
        return ScopedMemory(0, "")
    rows, spans = module.tables[CONFIGS]["parent"], module.tables[CONFIGS]["value"]
    row = next(iter(rows[(spans.start <= at) & (at < spans.start + spans.length)].tolist()), 0)
    return ScopedMemory(most, module.names(np.array([row]))[0])


WITH_CONFIG = Plan(
    HloProto,
    skip=(
        "buffer_assignment",
        "hlo_module.stack_frame_index",
        "hlo_module.schedule",
        *(
            f"hlo_module.computations.instructions.{name}"
            for name in ("operand_ids", "called_computation_ids", "output_operand_aliasing", "metadata", "shape")
        ),
    ),
)
KERNEL = b'"custom_call_config":{'  # of a Pallas kernel; `body` is its code
LIMITS = re.compile(rb'"scoped_memory_configs":\[\{([^\[\]]*)\}\]')
VMEM = 1  # the memory space


def kernels(module: HloModule) -> tuple[KernelMemory, ...]:
    """Return the on-chip memory of each Pallas kernel, in order of the file."""
    rows, spans = module.tables[CONFIGS]["parent"], module.tables[CONFIGS]["value"]
    candidates = np.flatnonzero(module.is_opcode({"custom-call"})[rows] & (spans.length > 0))
    configs = zip(rows[candidates].tolist(), module.bytes_of(spans.take(candidates)), strict=True)
    shapes, index = module.instruction_shapes

    @cache  # a kernel may have many operands of one shape, whose text is long
    def text(shape: int) -> str:
        return shape_text(shapes.distinct[shapes.kind[shapes.begin[shape]]])

    return tuple(
        _kernel(module, row, config, lambda row: text(int(index[row]))) for row, config in configs if KERNEL in config
    )


def used_by_kernel(data: bytes | memoryview, budget: ReadBudget) -> dict[str, int]:
    """Return the bytes of VMEM that each kernel takes, by instruction, from a module after code generation."""
    try:
        table = scan(data, WITH_CONFIG, budget=budget)["hlo_module.computations.instructions"]
    except ValueError:  # damaged
        return {}
    found = {}
    for row in np.flatnonzero(table["backend_config"].length).tolist():
        config = table["backend_config"].bytes_at(data, row)
        if KERNEL in config and (size := _size(SCOPED, config)) is not None:
            found[table["name"].text_at(data, row)] = size
    return found


def _kernel(module: HloModule, row: int, config: bytes, text: Callable[[int], str]) -> KernelMemory:
    """Return a kernel's memory. `text` returns the shape of an instruction."""
    from tb_memplugin.model.out_of_memory import KernelMemory  # most programs have no kernel
    from tb_memplugin.readers.hlo.kernels.windows import windows

    operands = module.operands.values[module.operands.begin[row] : module.operands.begin[row + 1]]
    shapes_of_operands = tuple(text(operand) for operand in operands.tolist() if operand >= 0)
    return KernelMemory(
        name=module.names(np.array([row]))[0],
        op_name=module.op_name.of(np.array([row]))[0],
        limit_bytes=_size(LIMITS, config),
        used_bytes=_size(SCOPED, config),
        operands=shapes_of_operands,
        result=text(row),
        buffers=windows(config, shapes_of_operands, text(row), module.budget),
    )


def _size(pattern: re.Pattern[bytes], config: bytes) -> int | None:
    """Return the bytes of VMEM in one list of a configuration."""
    found = (entry for match in pattern.finditer(config) for entry in _sizes(match[1]))
    return next((min(size, MAX_BYTES) for space, size in found if space == VMEM and size > 0), None)


def _sizes(entries: bytes) -> Iterator[tuple[int, int]]:
    """Yield the memory space and the bytes of each entry of a list; each is 0 where the entry lacks it."""
    for entry in entries.split(b"},{"):
        fields = {key: int(value) for key, value in SCOPED_FIELD.findall(entry[:MAX_ENTRY])}
        yield fields.get(b"memory_space", 0), fields.get(b"size", 0)
