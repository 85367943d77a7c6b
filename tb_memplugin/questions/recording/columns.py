"""The columns of allocations: names, units, explanations, and how each is computed for rows of a recording.

Each is declared here once. api/rows, exported tables, the answers of `buffers`, the columns in docs/json.md and the
page's arrays and headings (frontend/src/payload/generated/columns.ts, by `make client`) are derived from it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.fragmentation import Addresses, addresses
from tb_memplugin.analysis.ownership.by_model import copy_scopes
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.source_lines import source_lines
from tb_memplugin.analysis.usage.steps import allocation_step
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.kinds import Axis, RegionKind, Role
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Allocations
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.questions.recording.stack_texts import StackCells, stack_texts

ROLES = Strings.of([role.label for role in Role])  # a role's number is its place here
# Colors of roles as 0xRRGGBB, for a light and a dark page. The hues are the Okabe-Ito set, which people with any common
# kind of color blindness can tell apart. Lightness is adjusted to contrast with a white and with a near-black page.
ROLE_COLORS = (
    (0x8D9299, 0x8D9299),  # unknown: gray
    (0x0072B2, 0x2F8FD0),  # parameter: blue
    (0x56B4E9, 0x7CC7F2),  # optimizer state: sky
    (0x5D6BD0, 0x8490EE),  # input: indigo
    (0xD55E00, 0xE9742B),  # gradient: vermillion
    (0xE69F00, 0xF0B429),  # activation: orange
    (0xCC79A7, 0xD98BB8),  # output: pink
    (0xC8B400, 0xE8DC52),  # constant: yellow, darkened
    (0x009E73, 0x1FB68A),  # temporary: green
    (0x7B5EA7, 0x9D82C9),  # executable: violet
    (0x96755B, 0xB08C70),  # thread-local: brown
    (0x00606B, 0xA5EEF0),  # state: dark teal
)
REGION_KINDS = Strings.of([RegionKind(kind).label for kind in range(sum(RegionKind) + 1)])

ColumnValues = npt.NDArray[Any] | Text


class Numbers(NamedTuple):
    """Integers or booleans, and which of them are known."""

    values: npt.NDArray[Any]
    known: Mask


class ChosenRows:
    """Some rows of a recording, and what several columns of them have in common.

    Exports make them in pieces and pass the texts of `stacks` from one piece to the next.
    """

    def __init__(self, recording: Recording, which: I64, stacks: StackCells | None = None) -> None:
        self.recording = recording
        self.which = which
        self.table: Allocations = recording.allocations
        self.stacks = stacks or StackCells(recording.stacks)

    @cached_property
    def place(self) -> Addresses:
        return addresses(self.recording, self.which)

    @cached_property
    def is_born(self) -> Mask:
        """The rows that the recording allocates. Memory that is live at an instant was allocated before it."""
        return np.asarray((self.table.start[self.which] >= 0) & (self.recording.axis is not Axis.INSTANT))

    @cached_property
    def is_freed(self) -> Mask:
        return np.asarray(self.table.end[self.which] < self.recording.length)

    def times(self, positions: I32 | I64) -> tuple[I64, Mask]:
        """Return the time of each position in nanoseconds since the recording began, and which are known."""
        clock = self.recording.clock if self.recording.clock is not None else np.empty(0, dtype=np.int64)
        timed = (positions >= 0) & (positions < len(clock))
        return _entries(clock, positions, timed), timed


@dataclass(frozen=True)
class RowColumn:
    """A column of allocations: its name on the page, and its values for some rows."""

    name: str
    meaning: str
    """A noun phrase: the column's explanation in tables of the page and in the documentation."""
    values: Callable[[ChosenRows], ColumnValues]
    exported: str = ""
    """Its name in exported tables and in answers of commands; empty where it is in none."""
    heading: str = ""
    """Its heading in tables of the page, where it is in one."""
    unit: Literal["", "bytes", "position", "ns"] = ""
    page: Literal["", "text", "f64", "i32", "u8"] = ""
    """The page's array of it, whose i32 are narrowed to 32 bits; empty where the page has none."""
    known: Callable[[ChosenRows], Mask] | None = None
    """The rows whose value is known, for exports; None: all."""
    is_sent: Callable[[Recording], bool] | None = None
    """Tells whether api/rows has it; None: always. Elsewhere, the page's texts are empty and its roles unknown."""
    labels: Strings | None = None
    """Texts of the values in exports, where these are numbers of them."""

    def array(self, rows: ChosenRows) -> ColumnValues:
        """Return the column as api/rows has it."""
        found = self.values(rows)
        return found.astype(np.int32) if self.page == "i32" and not isinstance(found, Text) else found

    def cells(self, rows: ChosenRows) -> Numbers | Text:
        """Return the column as exported tables have it: texts, or numbers and booleans, some of them unknown."""
        found = self.values(rows)
        if isinstance(found, Text):
            return found
        known = self.known(rows) if self.known is not None else np.ones(len(rows.which), dtype=bool)
        if self.labels is not None:
            return Text(np.where(known, found.astype(np.int32), -1), self.labels)
        return Numbers(found, known)


def _table(name: str) -> Callable[[ChosenRows], Any]:
    """Return the values of a column that the recording's table of allocations has under this name."""

    def values(rows: ChosenRows) -> ColumnValues:
        column = getattr(rows.table, name)
        return column.take(rows.which) if isinstance(column, Text) else column[rows.which]

    return values


def _entries(column: I64, index: I64 | I32, known: Mask) -> I64:
    """Return the entries of a column at the known indices, else 0."""
    found = np.zeros(len(index), dtype=np.int64)
    found[known] = column[index[known]]
    return found


def _copied(rows: ChosenRows) -> Text:
    own, found = rows.table.op_name, copy_scopes(rows.recording)
    codes = np.where(found.codes == own.codes, -1, found.codes).astype(np.int32)
    return Text(codes, found.strings).take(rows.which)


def _freed_stacks(rows: ChosenRows) -> Text:
    leaves = rows.recording.free_stack
    return rows.stacks.texts(np.full(len(rows.which), -1, dtype=np.int32) if leaves is None else leaves[rows.which])


def _region_kinds(rows: ChosenRows) -> I64:
    regions = rows.recording.regions
    return _entries(regions.kind.astype(np.int64), rows.table.region[rows.which], _in_buffer_allocation(rows))


def _in_buffer_allocation(rows: ChosenRows) -> Mask:
    """Return the rows in a region that a program planned: regions with addresses are segments, which have no kind."""
    return rows.place.in_region & ~rows.place.addressed


COLUMNS: tuple[RowColumn, ...] = (
    RowColumn("recording", "the recording's id", lambda rows: Text(np.zeros(len(rows.which), dtype=np.int32),
              Strings.of([rows.recording.id])), "recording"),
    RowColumn("row", "the row's number in its recording", lambda rows: rows.which, "row"),
    RowColumn("name", "the buffer's or allocation's name", _table("name"), "name", "Name", page="text"),
    RowColumn("role", "the role, such as parameter or activation", lambda rows: roles(rows.recording)[rows.which],
              "role", "Role", page="u8", labels=ROLES),
    RowColumn("size", "bytes as placed, with padding and rounding", _table("size"), "size_bytes", "Size", "bytes",
              "f64"),
    RowColumn("requested", "bytes requested, without padding and rounding", _table("requested"),
              "requested_bytes", "Requested", "bytes", "f64"),
    RowColumn("charge", "bytes that the row adds to live bytes; 0 where its memory is charged to another row",
              _table("charge"), "charge_bytes", unit="bytes", page="f64"),
    RowColumn("count", "the number of allocations of this size that the row stands for",
              lambda rows: rows.recording.allocation_counts(rows.which), "count"),
    RowColumn("shape", "the shape with its layout", _table("shape"), "shape", "Shape", page="text"),
    RowColumn("dtype", "the element type", _table("dtype"), "dtype", "Type", page="text"),
    RowColumn("op", "the opcode or operator", _table("op"), "op", "Op", page="text"),
    RowColumn("op_name", "the model path", _table("op_name"), "op_name", "Op name", page="text"),
    RowColumn("copied", "the op_name of the copied value, for copies without one of their own; trees place them there",
              _copied, page="text"),
    RowColumn("source", "the user's innermost source line", lambda rows: source_lines(rows.recording).take(rows.which),
              "source", "Source", page="text"),
    # For a program's buffers the innermost frame is enough: a compiler merges the frames above it.
    RowColumn("stack", "the user's innermost Python frame, and the number of frames",
              lambda rows: stack_texts(rows.recording).take(rows.which), heading="Stack", page="text",
              is_sent=lambda recording: recording.axis is Axis.TIME),
    RowColumn("call_stack", "the call stack of the allocation",
              lambda rows: rows.stacks.texts(rows.table.stack[rows.which]), "stack"),
    RowColumn("freed_stack", "the call stack of the free", _freed_stacks, "freed_stack"),
    # The page finds the step of each allocation itself, from the spans that it draws.
    RowColumn("step", "the step of the allocation", lambda rows: allocation_step(rows.recording).take(rows.which),
              "step", "Step", page="text", is_sent=lambda recording: False),
    RowColumn("live_before", "whether it was allocated before the recording started", lambda rows: ~rows.is_born,
              "live_before"),
    RowColumn("never_freed", "whether it is still live when the recording ends", lambda rows: ~rows.is_freed,
              "never_freed"),
    RowColumn("start", "the position of the allocation", _table("start"), "allocated_at", "At", "position", "i32",
              known=lambda rows: rows.is_born),
    RowColumn("end", "the position of the free", _table("end"), "freed_at", unit="position", page="i32",
              known=lambda rows: rows.is_freed),
    RowColumn("start_ns", "the time of the allocation", lambda rows: rows.times(rows.table.start[rows.which])[0],
              "allocated_at_ns", unit="ns",
              known=lambda rows: rows.times(rows.table.start[rows.which])[1] & rows.is_born),
    RowColumn("end_ns", "the time of the free", lambda rows: rows.times(rows.table.end[rows.which])[0], "freed_at_ns",
              unit="ns", known=lambda rows: rows.times(rows.table.end[rows.which])[1] & rows.is_freed),
    RowColumn("defined", "the position where its value is written", _table("defined"), "defined_at", "Defined",
              "position", "i32"),
    RowColumn("last_used", "the position of its last use, or of the last use of a buffer that shares its memory",
              _table("last_used"), "last_used_at", "Last used", "position", "i32"),
    RowColumn("region", "the row of its region in the table of regions", _table("region"), page="i32"),
    RowColumn("region_index", "the index of the buffer allocation or segment that contains it",
              lambda rows: rows.place.region, "region", known=lambda rows: rows.place.in_region),
    RowColumn("region_kind", "the kind of that region: `parameter`, `output`, `constant`, `thread_local`, `temporary`",
              _region_kinds, "region_kind", known=_in_buffer_allocation, labels=REGION_KINDS),
    RowColumn("region_size", "the size of that region",
              lambda rows: _entries(rows.recording.regions.size, rows.table.region[rows.which], rows.place.in_region),
              "region_bytes", unit="bytes", known=lambda rows: rows.place.in_region),
    RowColumn("offset", "the offset in that region", _table("offset"), "offset_bytes", unit="bytes", page="f64",
              known=lambda rows: rows.table.offset[rows.which] >= 0),
    RowColumn("address", "the address in the memory", lambda rows: rows.place.address, "address",
              known=lambda rows: rows.place.addressed),
    RowColumn("canonical", "the row whose memory it shares", _table("canonical"), "shares_with_row", page="i32",
              known=lambda rows: rows.table.canonical[rows.which] != rows.which),
    RowColumn("id", "the number that the source gives it", _table("id"), "id", page="f64"),
)  # fmt: skip
PAGE_COLUMNS = [column for column in COLUMNS if column.page]
EXPORTED = {column.exported: column for column in COLUMNS if column.exported}
OF_DATA_FLOW = ("copied", "role")  # which take long to find for a large program


def facts(recording: Recording, row: int, names: Sequence[str]) -> dict[str, Any]:
    """Return values of one row by the names that exported columns have; None where a number is unknown."""
    rows, found = ChosenRows(recording, np.array([row])), dict[str, Any]()
    for name in names:
        cells = EXPORTED[name].cells(rows)
        found[name] = cells[0] if isinstance(cells, Text) else cells.values[0].item() if cells.known[0] else None
    return found
