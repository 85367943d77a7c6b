"""Lifetimes of allocations, from an allocator's events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import PROGRAM_FRAMES
from tb_memplugin.model.tables import Allocations
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.readers.xplane.allocator.events import MISSING
from tb_memplugin.readers.xplane.allocator.log import AllocatorLog
from tb_memplugin.readers.xplane.host.calls import HostCalls

BEFORE = "live before the recording"
NO_NAMES = {"", "dummy", "(null)"}  # JAX's runtime writes these where TensorFlow writes the op

# TensorFlow's DataType enum, which allocator events use; 0 is no type.
DTYPES = {
    1: "f32", 2: "f64", 3: "s32", 4: "u8", 5: "s16", 6: "s8", 7: "string", 8: "c64", 9: "s64", 10: "pred",
    14: "bf16", 17: "u16", 18: "c128", 19: "f16", 22: "u32", 23: "u64",
}  # fmt: skip


class Lifetimes(NamedTuple):
    """Rows: allocations, frees of memory from before the recording, then at most one for the rest of that memory."""

    rows: Allocations
    free_stack: I32
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

    def column(values: I64 | I32, rest_value: int) -> I64:
        return np.concatenate([values[row_event].astype(np.int64), np.full(rest_rows, rest_value, dtype=np.int64)])

    start = column(np.where(log.frees, -1, np.arange(len(log))), -1)
    end = column(np.where(log.frees, np.arange(len(log)), np.where(partner >= 0, partner, len(log))), len(log))
    size = column(log.size, before)
    has_address = address != MISSING
    base_address = int(address[has_address].min()) if has_address.any() else 0
    frame = column(np.where(log.frees, -1, log.frame), -1).astype(np.int32)
    # An allocation at an address in use also ends the earlier row, but has no free event and so no free stack.
    freed = np.where((partner >= 0) & log.frees[partner], log.frame[partner], -1)
    rows = Allocations(
        id=column(log.rows, -1),
        size=size,
        requested=column(log.requested, before),
        charge=size,
        start=start,
        end=end,
        defined=start,
        last_used=end - 1,
        region=np.zeros(len(start), dtype=np.int32),
        offset=column(np.where(has_address, address - base_address, -1), -1),
        canonical=np.arange(len(start), dtype=np.int32),
        role=np.full(len(start), int(Role.UNKNOWN), dtype=np.uint8),
        stack=frame,
        name=_names(log, row_event, frame, rest_rows),
        shape=_append_rows(log.text("shape").take(row_event), "", rest_rows),
        dtype=_dtypes(column(log.number("data_type"), 0)),
        op=_append_rows(log.text("region_type").take(row_event), "", rest_rows),
        scope=_scopes(log, frame),
    )
    free_stack = column(np.where(log.frees, log.frame, freed), -1).astype(np.int32)
    return Lifetimes(rows, free_stack, base_address, before, orphaned, len(orphans))


def _names(log: AllocatorLog, row_event: I64, frame: I32, rest_rows: int) -> Text:
    """Return the op where the runtime names one, else the function of the innermost frame, else nothing."""
    ops, functions = log.text("tf_op").take(row_event), _frame_functions(log.calls)
    has_op = ops.where(lambda op: op not in NO_NAMES)
    innermost = frame[: len(row_event)]
    code = np.where(innermost >= 0, functions.codes[innermost], -1) if len(functions) else np.full(len(row_event), -1)
    strings = Strings.joined(ops.strings, functions.strings)
    codes = np.where(has_op, ops.codes, np.where(code >= 0, len(ops.strings) + code, -1)).astype(np.int32)
    return _append_rows(Text(codes, strings), BEFORE, rest_rows)


def _frame_functions(calls: HostCalls) -> Text:
    """Return the function of each frame; for the runtime's frames that all programs share, the jitted function."""
    functions, jitted = calls.stacks.function, calls.jitted
    if not len(jitted):
        return functions
    strings = functions.strings
    codes = np.where(functions.isin(PROGRAM_FRAMES) & jitted.nonempty, len(strings) + jitted.codes, functions.codes)
    return Text(codes.astype(np.int32), Strings.joined(strings, jitted.strings))


def _scopes(log: AllocatorLog, frame: I32) -> Text:
    """Return the jitted function around each row's innermost frame."""
    jitted = log.calls.jitted
    if not len(jitted):
        return Text(np.full(len(frame), -1, dtype=np.int32), Strings.of([]))
    return Text(np.where(frame >= 0, jitted.codes[frame], -1).astype(np.int32), jitted.strings)


def _append_rows(text: Text, value: str, count: int) -> Text:
    """Append `count` (0 or 1) rows of `value` to a text column."""
    strings = text.strings
    extended = Strings(strings.blob + value.encode(), np.r_[strings.offsets, strings.offsets[-1] + len(value.encode())])
    return Text(np.r_[text.codes, np.full(count, len(strings))].astype(np.int32), extended)


def _dtypes(numbers: I64) -> Text:
    has_address = sorted(DTYPES)
    code = np.searchsorted(has_address, numbers)
    code = np.where(np.isin(numbers, has_address), code, -1)
    return Text(code.astype(np.int32), Strings.of([DTYPES[number] for number in has_address]))
