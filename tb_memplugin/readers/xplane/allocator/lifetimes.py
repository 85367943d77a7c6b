"""Events of one allocator, with their pairing, sizes and bytes in use, and the lifetimes of its allocations."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.program import PROGRAM_FRAMES
from tb_memplugin.model.tables import Allocations
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.xplane.stats import MISSING
from tb_memplugin.readers.common.rows import Pairs, pair
from tb_memplugin.readers.common.table_builder import allocations
from tb_memplugin.readers.xplane.allocator.events import ADDRESS_LIMIT, AllocatorEvents
from tb_memplugin.readers.xplane.host_calls import HostCalls

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class AllocatorLog:
    """The events of one allocator; each column has one entry per event, ordered by time."""

    events: AllocatorEvents
    rows: I64  # this allocator's rows of `events`

    def __len__(self) -> int:
        return len(self.rows)

    def of_own(self, column: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return a column of `events` for this allocator's rows; most profiles have one allocator, and need no copy."""
        return column if len(self.rows) == len(self.events) else column[self.rows]

    def number(self, name: str) -> I64:
        return self.of_own(self.events.numbers[name])

    def text(self, name: str) -> Text:
        column = self.events.texts[name]
        return Text(self.of_own(column.codes), column.strings)

    @cached_property
    def frees(self) -> Mask:
        return self.of_own(self.events.frees)

    @cached_property
    def address(self) -> I64:
        return self.number("addr")

    @cached_property
    def pairs(self) -> Pairs:
        return pair(self.address, self.frees, self.address != MISSING)

    @cached_property
    def reported_size(self) -> I64:
        """Bytes of the event's allocation, as placed; MISSING where they cannot be found.

        Frees on TPU have no size. A free then has its allocation's size, else the decrease of the bytes in use.
        """
        size = _filled(self.number("allocation_bytes"), lambda: self.number("requested_bytes"))
        size = _filled(
            size, lambda: np.where(self.frees & (self.pairs.partner >= 0), size[self.pairs.partner], MISSING)
        )
        return _filled(size, self._steps)

    def _steps(self) -> I64:
        """Return the change of the bytes in use by each event, MISSING where it is unknown."""
        in_use = self.number("bytes_allocated")
        step = np.abs(np.diff(in_use, prepend=in_use[0]))
        step[(in_use == MISSING) | (np.r_[MISSING, in_use[:-1]] == MISSING)] = MISSING
        return step

    @cached_property
    def size(self) -> I64:
        """`reported_size`, with 0 for MISSING."""
        return np.maximum(self.reported_size, 0)

    @cached_property
    def requested(self) -> I64:
        """Bytes requested; where the event has no such number, the bytes as placed, as the padding is then unknown."""
        requested = self.number("requested_bytes")
        return np.where(requested == MISSING, self.size, np.minimum(requested, self.size))

    @cached_property
    def change(self) -> I64:
        """Bytes that the event adds to the bytes in use; negative for a free."""
        return np.where(self.frees, -self.size, self.size)

    @cached_property
    def in_use(self) -> I64:
        """Bytes in use after each event.

        An event without the number gets it from the last event before that has it, else from the first after, plus the
        changes in between, but at least 0: events may be missing. Where no event has it, the series is the lowest that
        never falls below 0.
        """
        in_use = self.number("bytes_allocated")
        present = in_use != MISSING
        if present.all():
            return in_use
        change = np.cumsum(self.change)
        if not present.any():
            return change - min(0, int(change.min()))
        last = _last_present(present)
        found: I64 = np.maximum(in_use[last] - change[last] + change, 0)
        return found

    def forward_fill(self, name: str) -> I64:
        """Return a number per event: its own, else the last before it, else the first; all 0 where no event has it."""
        numbers = self.number(name)
        present = numbers != MISSING
        if present.all():
            return numbers
        filled: I64 = numbers[_last_present(present)] if present.any() else np.zeros_like(numbers)
        return filled


def _filled(numbers: I64, others: Callable[[], I64]) -> I64:
    """Return the numbers, with the others where they are MISSING; the others are made only where some are."""
    missing = numbers == MISSING
    return np.where(missing, others(), numbers) if missing.any() else numbers


def _last_present(present: Mask) -> I64:
    """Return, per event, the last present event up to it, else the first present one. At least one is present."""
    last: I64 = np.maximum.accumulate(np.where(present, np.arange(len(present)), int(np.argmax(present))))
    return last


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
