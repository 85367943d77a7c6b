"""XLA's memory usage report as text: the slots of each buffer allocation, with the shapes of the values in them.

    Memory Space: default (color=0)
    Total bytes: 7340072 (7.00MiB)
      cumulative_size;       size;       offset; used_by_n_values; shapes_list
      ------------------------------------------------------------
        1.00MiB( 25%);    1.00MiB;      3145728;                3; 3\u00d7f32[512,512]

Each table is of one allocation. Older reports name it before: `allocation 6: size 4.0MiB, preallocated-temp:`.
"""

import re
from collections.abc import Iterator

from tb_memplugin.protos.hlo_pb2 import BufferAllocationProto, BufferAssignmentProto
from tb_memplugin.readers.hlo.module.shapes import parsed, unpadded_bytes
from tb_memplugin.readers.hlo_text.shape import parse_shape
from tb_memplugin.sizes import printed_size

HEADERS = ("Memory Space: ", "Total bytes used: ")
SPACE = re.compile(r"Memory Space: .{0,80}?\(color=(\d{1,9})\)")
SIZE = r"[\d.]{1,20}[KMGTP]?i?B"
ALLOCATION = re.compile(rf"(?:^|; )allocation (\d{{1,9}}): size ({SIZE})(.*)$")
SHAPE_OF_ALLOCATION = re.compile(r", shape \|(.*)\|")
FLAG = re.compile(r", (parameter|constant|thread-local|maybe-live-out)(?= \d|[,:]|$)")
SLOT = re.compile(rf"\s*{SIZE}\(\s*\d{{1,3}}%\);\s*({SIZE});\s*(\d{{1,18}});\s*\d{{1,9}}; (.*)$")
ARRAY = re.compile(r"[a-z]\w{0,20}\[[\d,<=]*\]")
FLAG_FIELDS = {
    "parameter": "is_entry_computation_parameter",
    "constant": "is_constant",
    "thread-local": "is_thread_local",
    "maybe-live-out": "maybe_live_out",
}
MAX_ERROR = 0.006  # sizes have three digits


def read_report(text: str, assignment: BufferAssignmentProto) -> Iterator[tuple[int, str, str]]:
    """Add the allocations of a report; yield (id, name, shape) of a logical buffer for each slot."""
    allocation: BufferAllocationProto | None = None
    named: dict[str, BufferAllocationProto] = {}
    color, in_table, number = 0, False, 0
    for line in text.split("\n"):
        if found := SPACE.match(line):
            color = int(found[1])
        elif found := ALLOCATION.search(line):
            in_table = False
            if found[1] not in named:
                named[found[1]] = _add(assignment, color, found[2], found[3])
            allocation = named[found[1]]
        elif "shapes_list" in line and (in_table or not named):
            allocation = assignment.buffer_allocations.add(index=len(assignment.buffer_allocations), color=color)
        elif allocation is not None and (found := SLOT.match(line)):
            in_table, number = True, number + 1
            size, offset = _exact(found[1], found[3]), int(found[2])
            allocation.size = max(allocation.size, offset + size)
            allocation.assigned.add(logical_buffer_id=number, offset=offset, size=size)
            name = f"allocation {allocation.index}, offset {offset}"
            buffer = assignment.logical_buffers.add(id=number)
            buffer.defined_at.instruction_name = name.encode()
            yield number, name, next(iter(ARRAY.findall(found[3])), "")


def flags_of(allocation: str) -> dict[str, bool]:
    """Return the fields of a BufferAllocationProto that a printed allocation sets, here and in buffer assignments."""
    return {FLAG_FIELDS[name]: True for name in FLAG.findall(allocation)}


def _add(assignment: BufferAssignmentProto, color: int, size: str, rest: str) -> BufferAllocationProto:
    shape = SHAPE_OF_ALLOCATION.search(rest)
    nbytes = _exact(size, shape[1] if shape else "")
    return assignment.buffer_allocations.add(
        index=len(assignment.buffer_allocations), color=color, size=nbytes, **flags_of(rest)
    )


def _exact(size: str, shapes: str) -> int:
    """Return the bytes of a shape that are printed as `size`; the printed size where no shape has so many."""
    printed = printed_size(size) or 0
    sizes = (unpadded_bytes(parsed(parse_shape(shape))) for shape in ARRAY.findall(shapes))
    return max((nbytes for nbytes in sizes if abs(nbytes - printed) <= MAX_ERROR * printed), default=printed)
