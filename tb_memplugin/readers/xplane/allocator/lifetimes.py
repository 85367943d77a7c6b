"""Lifetimes of allocations, from an allocator's events."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.program import PROGRAM_FRAMES
from tb_memplugin.model.tables import Allocations
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.xplane.stats import MISSING
from tb_memplugin.readers.common.table_builder import allocations
from tb_memplugin.readers.xplane.allocator.events import ADDRESS_LIMIT
from tb_memplugin.readers.xplane.allocator.log import AllocatorLog
from tb_memplugin.readers.xplane.host_calls import HostCalls

BEFORE = "live before the recording"
NO_NAMES = {"", "dummy", "(null)"}  # JAX's runtime writes these where TensorFlow writes the op

# TensorFlow's DataType enum, which allocator events use; 0 is no type.
DTYPES = {
    1: "f32", 2: "f64", 3: "s32", 4: "u8", 5: "s16", 6: "s8", 7: "string", 8: "c64", 9: "s64", 10: "pred",
    14: "bf16", 17: "u16", 18: "c128", 19: "f16", 22: "u32", 23: "u64",
}  # fmt: skip


class Lifetimes(NamedTuple):
    """Rows: allocations, frees of memory from before the recording, then at most one for the rest of that memory."""

    rows: Allocations  # without stacks, and without the columns that come from stacks
    base_address: int  # the lowest address
    before: int  # bytes live at the start and never freed; negative where more was freed than was in use
    orphaned: int  # bytes live at the start and freed later
    orphans: int  # the number of those frees


def lifetimes(log: AllocatorLog) -> Lifetimes:
    """Pair an allocator's allocations with their frees, as rows."""
    partner, address = log.pairs.partner, log.address
    allocated, orphans = np.flatnonzero(~log.frees), np.flatnonzero(log.frees & (partner < 0))
    orphaned = int(log.size[orphans].sum())
    before = int(log.in_use[0] - log.change[0]) - orphaned
    row_event = np.r_[allocated, orphans]  # the event behind each row
    rest_rows = int(before > 0)

    def column(values: I64, rest_value: int) -> I64:
        return np.append(values, rest_value) if rest_rows else values

    ended = partner[allocated]
    start = column(np.r_[allocated, np.full(len(orphans), -1)], -1)
    end = column(np.r_[np.where(ended >= 0, ended, len(log)), orphans], len(log))
    size = column(log.size[row_event], before)
    base_address = int(address.min(where=address != MISSING, initial=ADDRESS_LIMIT)) % ADDRESS_LIMIT
    place = address[row_event]
    rows = allocations(
        size,
        id=column(log.rows[row_event], -1),
        requested=column(log.requested[row_event], before),
        start=start,
        end=end,
        last_used=end - 1,
        region=np.zeros(len(start), dtype=np.int32),
        offset=column(np.where(place == MISSING, -1, place - base_address), -1),
        name=_append_rows(_named(log.text("tf_op").take(row_event)), BEFORE, rest_rows),
        shape=_append_rows(log.text("shape").take(row_event), "", rest_rows),
        dtype=dtypes(column(log.number("data_type")[row_event], 0)),
        op=_append_rows(log.text("region_type").take(row_event), "", rest_rows),
    )
    return Lifetimes(rows, base_address, before, orphaned, len(orphans))


def with_stacks(rows: Allocations, frame: I32, calls: HostCalls) -> Allocations:
    """Add the stacks of allocations, and the names and jitted functions of their innermost frames.

    `frame`: the innermost frame around each event.
    """
    stack = np.append(frame, np.int32(-1))[rows.start]  # the last entry is for rows from before the recording
    name, functions = rows.name, _frame_functions(calls)
    further = np.append(np.where(functions.codes >= 0, functions.codes + len(name.strings), -1), -1).astype(np.int32)
    codes = np.where(name.codes >= 0, name.codes, further[stack])
    return replace(
        rows,
        stack=stack,
        name=Text(codes, Strings.joined(name.strings, functions.strings)),
        op_name=Text(np.append(calls.jitted.codes, np.int32(-1))[stack], calls.jitted.strings),
    )


def free_stacks(rows: Allocations, frame: I32, frees: Mask) -> I32:
    """Return the stack that freed each row.

    An allocation at an address in use also ends the earlier row, but has no free event and so no free stack.
    """
    freed = np.append(np.where(frees, frame, -1), np.int32(-1))  # the last entry is for rows that are never freed
    return freed[rows.end]


def _named(ops: Text) -> Text:
    """Return the ops that the runtime names."""
    return Text(np.where(ops.where(lambda op: op not in NO_NAMES), ops.codes, -1).astype(np.int32), ops.strings)


def _frame_functions(calls: HostCalls) -> Text:
    """Return the function of each frame; for the runtime's frames that all programs share, the jitted function."""
    functions, jitted = calls.stacks.function, calls.jitted
    if not len(jitted):
        return functions
    strings = functions.strings
    codes = np.where(functions.isin(PROGRAM_FRAMES) & jitted.nonempty, len(strings) + jitted.codes, functions.codes)
    return Text(codes.astype(np.int32), Strings.joined(strings, jitted.strings))


def _append_rows(text: Text, value: str, count: int) -> Text:
    """Append `count` (0 or 1) rows of `value` to a text column."""
    if not count:
        return text
    if not value:
        return Text(np.append(text.codes, np.int32(-1)), text.strings)
    strings = text.strings
    return Text(np.append(text.codes, np.int32(len(strings))), Strings.joined(strings, Strings.of([value])))


def dtypes(numbers: I64) -> Text:
    """Return the names of data types, empty for unknown ones."""
    known = sorted(DTYPES)
    code = np.full(known[-1] + 2, -1, dtype=np.int32)  # by number; the last entry is for all others
    code[known] = range(len(known))
    inside = (numbers >= 0) & (numbers <= known[-1])
    return Text(code[np.where(inside, numbers, -1)], Strings.of([DTYPES[number] for number in known]))
