"""On-chip memory of the Pallas kernels of a TPU program."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.protos.hlo_fields import HloProto
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.lifetimes.scoped_memory import SCOPED, SCOPED_FIELD
from tb_memplugin.readers.hlo.module.shapes import shape_text
from tb_memplugin.readers.hlo.module.tables import CONFIGS, MAX_BYTES, HloModule

if TYPE_CHECKING:
    from tb_memplugin.model.kernels import KernelMemory

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

    @cache  # as a kernel may have many operands of one shape, with a long text
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
        config = _at(data, table["backend_config"], row)
        if KERNEL in config and (size := _size(SCOPED, config)) is not None:
            found[_at(data, table["name"], row).decode("utf-8", "replace")] = size
    return found


def _at(data: bytes | memoryview, spans: Spans, row: int) -> bytes:
    start = int(spans.start[row])
    return bytes(data[start : start + int(spans.length[row])])


def _kernel(module: HloModule, row: int, config: bytes, text: Callable[[int], str]) -> KernelMemory:
    """Return a kernel's memory. `text` returns the shape of an instruction."""
    from tb_memplugin.model.kernels import KernelMemory  # most programs have no kernel
    from tb_memplugin.readers.hlo.kernels.windows import windows

    operands = module.operands.values[module.operands.begin[row] : module.operands.begin[row + 1]]
    shapes_of_operands = tuple(text(operand) for operand in operands.tolist() if operand >= 0)
    return KernelMemory(
        name=module.names(np.array([row]))[0],
        scope=module.scope.of(np.array([row]))[0],
        limit_bytes=_size(LIMITS, config),
        used_bytes=_size(SCOPED, config),
        operands=shapes_of_operands,
        result=text(row),
        buffers=windows(config, shapes_of_operands, text(row)),
    )


def _size(pattern: re.Pattern[bytes], config: bytes) -> int | None:
    """Return the bytes of VMEM in one list of a configuration."""
    for found in pattern.finditer(config):
        for entry in found[1].split(b"},{"):
            fields = {key: int(value) for key, value in SCOPED_FIELD.findall(entry[:200])}
            if fields.get(b"memory_space") == VMEM and fields.get(b"size", 0) > 0:
                return min(fields[b"size"], MAX_BYTES)
    return None
