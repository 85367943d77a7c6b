"""The memory that a program reserves and its module's name, read without the program's instructions and buffers."""

from __future__ import annotations

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.protos.hlo_fields import HloModuleProto, HloProto
from tb_memplugin.readers.common.budget import ReadBudget, decompress
from tb_memplugin.readers.hlo.module.tables import ALLOCATIONS, MAX_BYTES
from tb_memplugin.readers.hlo.recordings import memory_name

# Reading these takes 0.03 ms, however long the program is; reading all of a program takes 5 ms or more.
SIZES = Plan(
    HloProto,
    skip=(
        "hlo_module",
        "buffer_assignment.logical_buffers",
        "buffer_assignment.buffer_aliases",
        "buffer_assignment.heap_simulator_traces",
        f"{ALLOCATIONS}.assigned",
        f"{ALLOCATIONS}.parameter_number",
        f"{ALLOCATIONS}.parameter_shape_index",
    ),
)
_OTHERS = (f"hlo_module.{field.name}" for field in HloModuleProto.fields if field.name != "name")
NAME = Plan(HloProto, skip=("buffer_assignment", *_OTHERS))


def module_name(data: bytes | memoryview, path: str) -> str:
    """Return the name of a program's module; empty where the file is damaged."""
    budget = ReadBudget(data, path)
    try:
        content = decompress(data, budget)
        name: Spans = scan(content, NAME, budget=budget)[""]["hlo_module.name"]
    except (ValueError, InputError):
        return ""
    return name.text_at(content)


def reserved_by_memory(data: bytes | memoryview, path: str) -> dict[str, int]:
    """Return the bytes that a program reserves in each memory; empty where the file is damaged."""
    budget = ReadBudget(data, path)
    try:
        table = scan(decompress(data, budget), SIZES, budget=budget)[ALLOCATIONS]
    except (ValueError, InputError):
        return {}
    sizes = np.clip(table["size"], 0, MAX_BYTES)
    spaces = np.unique(table["color"][sizes > 0]).tolist()
    return {memory_name(space): int(sizes[table["color"] == space].sum()) for space in spaces}
