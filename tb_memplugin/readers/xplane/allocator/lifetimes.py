"""The lifetimes that an allocator's events are the ends of."""

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
NO_NAMES = {"", "dummy", "(null)"}  # what JAX's runtime puts where TensorFlow names the op

# TensorFlow's DataType, as allocator events give it; 0 is none.
DTYPES = {
    1: "f32", 2: "f64", 3: "s32", 4: "u8", 5: "s16", 6: "s8", 7: "string", 8: "c64", 9: "s64", 10: "pred",
    14: "bf16", 17: "u16", 18: "c128", 19: "f16", 22: "u32", 23: "u64",
}  # fmt: skip


class Lifetimes(NamedTuple):
    """A row per allocation, then one per free of what was live before, then one for the rest of that, if any."""

    rows: Allocations
    free_stack: I32
    base: int  # the lowest address
    before: int  # bytes live before and not freed, below 0 where more was freed than was in use
    orphaned: int  # bytes live before and freed
    orphans: int  # by so many frees


def lifetimes(log: AllocatorLog) -> Lifetimes:
    partner, address = log.pairs.partner, log.address
    allocated, orphans = np.flatnonzero(~log.frees), np.flatnonzero(log.frees & (partner < 0))
    orphaned = int(log.size[orphans].sum())
    before = int(log.in_use[0] - log.change[0]) - orphaned
    born = np.r_[allocated, orphans]  # the event that a row is known from
    rest = int(before > 0)

    def column(of_events: I64 | I32, of_rest: int) -> I64:
        return np.concatenate([of_events[born].astype(np.int64), np.full(rest, of_rest, dtype=np.int64)])

    start = column(np.where(log.frees, -1, np.arange(len(log))), -1)
    end = column(np.where(log.frees, np.arange(len(log)), np.where(partner >= 0, partner, len(log))), len(log))
    size = column(log.size, before)
    known = address != MISSING
    base = int(address[known].min()) if known.any() else 0
    frame = column(np.where(log.frees, -1, log.frame), -1).astype(np.int32)
    # An allocation at an address that is still taken ends a row too, and frees nothing.
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
        offset=column(np.where(known, address - base, -1), -1),
        canonical=np.arange(len(start), dtype=np.int32),
        role=np.full(len(start), int(Role.UNKNOWN), dtype=np.uint8),
        stack=frame,
        name=_names(log, born, frame, rest),
        shape=_with(log.text("shape").take(born), "", rest),
        dtype=_dtypes(column(log.number("data_type"), 0)),
        op=_with(log.text("region_type").take(born), "", rest),
        scope=_scopes(log, frame),
    )
    free_stack = column(np.where(log.frees, log.frame, freed), -1).astype(np.int32)
    return Lifetimes(rows, free_stack, base, before, orphaned, len(orphans))


def _names(log: AllocatorLog, born: I64, frame: I32, rest: int) -> Text:
    """The op where the runtime names one, else what it was made in, else nothing."""
    ops, places = log.text("tf_op").take(born), _places(log.calls)
    named = np.array([ops.strings[i] not in NO_NAMES for i in range(len(ops.strings))] + [False])[ops.codes]
    inside = frame[: len(born)]
    code = np.where(inside >= 0, places.codes[inside], -1) if len(places) else np.full(len(born), -1)
    strings = Strings.joined(ops.strings, places.strings)
    codes = np.where(named, ops.codes, np.where(code >= 0, len(ops.strings) + code, -1)).astype(np.int32)
    return _with(Text(codes, strings), BEFORE, rest)


def _places(calls: HostCalls) -> Text:
    """Each frame, and the jitted function for those of the runtime that all programs' own memory is made in."""
    functions, jitted = calls.stacks.function, calls.jitted
    if not len(jitted):
        return functions
    strings = functions.strings
    shared = np.isin(functions.codes, [i for i in range(len(strings)) if strings[i] in PROGRAM_FRAMES])
    inside = np.r_[np.diff(jitted.strings.offsets) > 0, False][jitted.codes]
    codes = np.where(shared & inside, len(strings) + jitted.codes, functions.codes)
    return Text(codes.astype(np.int32), Strings.joined(strings, jitted.strings))


def _scopes(log: AllocatorLog, frame: I32) -> Text:
    """The jitted function that each was made in."""
    jitted = log.calls.jitted
    if not len(jitted):
        return Text(np.full(len(frame), -1, dtype=np.int32), Strings.of([]))
    return Text(np.where(frame >= 0, jitted.codes[frame], -1).astype(np.int32), jitted.strings)


def _with(text: Text, last: str, count: int) -> Text:
    """The column, and `count` (0 or 1) rows more that say `last`."""
    strings = text.strings
    added = Strings(strings.blob + last.encode(), np.r_[strings.offsets, strings.offsets[-1] + len(last.encode())])
    return Text(np.r_[text.codes, np.full(count, len(strings))].astype(np.int32), added)


def _dtypes(numbers: I64) -> Text:
    known = sorted(DTYPES)
    code = np.searchsorted(known, numbers)
    code = np.where(np.isin(numbers, known), code, -1)
    return Text(code.astype(np.int32), Strings.of([DTYPES[number] for number in known]))
