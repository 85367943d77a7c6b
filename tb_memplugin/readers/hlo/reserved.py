"""The memory that a program reserves and its module's name, read without the program's instructions and buffers."""

import re
import zlib

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.formats import HLO_TEXT
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.protos.hlo_fields import HloProto
from tb_memplugin.readers.common.budget import GZIP_FORMAT, GZIP_MAGIC, ReadBudget, decompress
from tb_memplugin.readers.common.limits import MAX_BYTES
from tb_memplugin.readers.hlo.module.tables import ALLOCATIONS
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
# A module and its name are the first fields of the first message in a file.
NAME = re.compile(rb"\x0a[\x80-\xff]{0,9}[\x00-\x7f]\x0a(?:([\x00-\x7f])|([\x80-\xff])([\x01-\x7f]))", re.DOTALL)
ALLOCATION_TEXT = re.compile(
    rb"^allocation \d{1,9}: (?:0x[0-9a-f]{1,16}, )?size (\d{1,18})(?:, color (\d{1,9}))?", re.MULTILINE
)
HEAD_BYTES = 32 << 10  # with a name of 16,383 bytes, the longest that NAME matches


def module_name(head: bytes) -> str:
    """Return the name of a program's module, from the beginning of its file; empty where the file is damaged."""
    if head.startswith(GZIP_MAGIC):
        try:
            head = zlib.decompressobj(GZIP_FORMAT).decompress(head, HEAD_BYTES)
        except zlib.error:
            return ""
    if (found := NAME.match(head)) is None:
        return ""
    length = found[1][0] if found[1] else (found[2][0] & 127) + (found[3][0] << 7)
    return head[found.end() : found.end() + length].decode("utf-8", "replace")


def reserved_by_memory(data: bytes | memoryview, path: str) -> dict[str, int]:
    """Return the bytes that a program reserves in each memory; empty where the file is damaged."""
    budget = ReadBudget(data, path)
    if path.endswith(HLO_TEXT.suffixes):
        budget.work(len(data))
        found = np.array(ALLOCATION_TEXT.findall(data), dtype="S18").reshape(-1, 2)
        size, color = (np.where(column == b"", b"0", column).astype(np.int64) for column in found.T)
    else:
        try:
            table = scan(decompress(data, budget), SIZES, budget=budget)[ALLOCATIONS]
        except (ValueError, InputError):
            return {}
        size, color = table["size"], table["color"]
    sizes = np.clip(size, 0, MAX_BYTES)
    spaces = np.unique(color[sizes > 0]).tolist()
    return {memory_name(space): int(sizes[color == space].sum()) for space in spaces}
