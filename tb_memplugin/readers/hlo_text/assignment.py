"""The texts of a program, and the HloProto that they amount to."""

import re

import numpy as np

from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.placement import LiveRanges
from tb_memplugin.readers.hlo_text.assumed import assume_assignment
from tb_memplugin.readers.hlo_text.module import ModuleText, numbers
from tb_memplugin.readers.hlo_text.shape import parse_shape
from tb_memplugin.readers.hlo_text.usage_report import HEADERS, flags_of, read_report

# Older versions print a pointer before the size, and mark values that join others as (phi).
ALLOCATION = re.compile(r"allocation (\d{1,9}): (?:0x[0-9a-f]+, )?size (\d{1,18})(.*)$")
COLOR = re.compile(r", color (\d{1,9})(?=[,:])")
VALUE = re.compile(
    r" +value: <(\d{1,18}) ([^\s{}<>]+)(?:\{([\d,]*)\})?(?: \(phi\))? @(\d{1,9})>"
    r" \(size=(\d{1,18}),offset=(\d{1,18})\): (.*)$"
)
POSITION = re.compile(r" +(\d{1,9}):(\S+)$")
RANGE = re.compile(r" +([^\s{}]+)(?:\{([\d,]*)\}):(\d{1,9})-(\d{1,9})$")


class ProgramText:
    """A program that is read from texts of a dump."""

    def __init__(self) -> None:
        self.proto = HloProto()
        self.module = ModuleText(self.proto.hlo_module)
        self.has_allocations = self.has_ranges = self.has_module = False
        self._report = ""
        self._order: list[str] = []
        self._ranges: dict[tuple[str, str], tuple[int, int]] = {}  # by instruction and shape index
        self._values: list[tuple[int, tuple[str, str]]] = []  # id, and the key in _ranges
        self._shapes: dict[str, str] = {}

    def add(self, text: bytes) -> None:
        """Read one text; only the first of each kind counts."""
        lines = text.decode("utf-8", "replace")
        if lines.startswith("BufferAssignment") and not self.has_allocations:
            self._read_assignment(lines)
        elif lines.startswith("HloLiveRange") and not self.has_ranges:
            self._read_ranges(lines)
        elif lines.startswith("HloModule") and not self.has_module:
            self.module.read(lines)
            self.has_module = bool(self.module.instructions)
        elif lines.startswith(HEADERS):  # for each memory
            self._report += lines

    @property
    def can_assume(self) -> bool:
        """True for a scheduled module without an assignment: it shows which memory it needs."""
        return not self.has_allocations and self.has_module and self.module.is_scheduled

    @property
    def has_report_only(self) -> bool:
        return not (self.has_allocations or self.can_assume) and bool(self._report)

    def _read_assignment(self, text: str) -> None:
        assignment = self.proto.buffer_assignment
        allocation = None
        for line in text.split("\n"):
            if found := ALLOCATION.match(line):
                color = COLOR.search(found[3])
                allocation = assignment.buffer_allocations.add(
                    index=int(found[1]), size=int(found[2]), color=int(color[1]) if color else 0, **flags_of(found[3])
                )
                self.has_allocations = True
            elif allocation is not None and (found := VALUE.match(line)):
                number, name, index, color_of_value, size, offset, shape = found.groups()
                allocation.assigned.add(logical_buffer_id=int(number), offset=int(offset), size=int(size))
                buffer = assignment.logical_buffers.add(id=int(number), size=int(size), color=int(color_of_value))
                buffer.defined_at.instruction_name = name.encode()
                buffer.defined_at.shape_index.extend(numbers(index or ""))
                self._values.append((int(number), (name, index or "")))
                if not index:
                    self._shapes[name] = shape

    def _assume(self, source: str, budget: ReadBudget) -> None:
        assume_assignment(self.proto, source, budget)
        computations = self.proto.hlo_module.computations
        names = {one.id: one.name.decode() for computation in computations for one in computation.instructions}
        for buffer in self.proto.buffer_assignment.logical_buffers:
            index = ",".join(map(str, buffer.defined_at.shape_index))
            self._values.append((buffer.id, (names[buffer.defined_at.instruction_id], index)))

    def _use_report(self) -> None:
        for number, name, shape in read_report(self._report, self.proto.buffer_assignment):
            self._values.append((number, (name, "")))
            self._shapes[name] = shape

    def _read_ranges(self, text: str) -> None:
        for line in text.split("\n"):
            if found := POSITION.match(line):
                self._order.append(found[2])
            elif found := RANGE.match(line):
                self._ranges[found[1], found[2]] = int(found[3]), int(found[4])
            elif line.startswith("  Live ranges at"):
                break
        self.has_ranges = bool(self._order and self._ranges)

    def serialized(self, source: str, budget: ReadBudget) -> tuple[bytes, LiveRanges]:
        """Return the program as a serialized HloProto, and the live ranges of its buffers."""
        if self.has_module:
            self.module.order_elements(self._order)
            self.module.write_schedule()
        if self.can_assume:
            self._assume(source, budget)
        elif self.has_report_only:
            self._use_report()
        if not self.has_module:
            self._make_module()
        found = [(number, *self._ranges[key]) for number, key in self._values if key in self._ranges]
        buffer, first, last = np.array(found, dtype=np.int64).reshape(-1, 3).T.copy()
        is_known = self.has_ranges or self.has_module
        return self.proto.SerializeToString(), LiveRanges(buffer, first, last, is_known)

    def _make_module(self) -> None:
        """Make a module of the named instructions: those of the live ranges in their order, the others unscheduled."""
        entry, others = (self.module.add_computation("", is_entry=is_entry) for is_entry in (True, False))
        scheduled = dict.fromkeys(self._order or [""])
        for name in scheduled:
            self.module.add_instruction(entry, name, "", parse_shape(self._shapes.get(name, "")))
        for name in dict.fromkeys(name for _, (name, _) in self._values if name not in scheduled):
            self.module.add_instruction(others, name, "", parse_shape(self._shapes.get(name, "")))
        sequence = self.proto.hlo_module.schedule.sequences[entry.id]
        sequence.instruction_ids.extend(instruction.id for instruction in entry.instructions)
