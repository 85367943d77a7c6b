"""Numbers for every place of the schedule that can show a buffer.

A node is one (instruction, shape index): the instruction at position p owns the nodes from `base[p]` on, numbered
as its shape's are (see ShapeTable).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.text import Text
from tb_memplugin.readers.hlo.lifetimes.schedule import Schedule
from tb_memplugin.readers.hlo.module import Module

Range = tuple[I32, I32, I32]  # columns: first node of the target, first node of the source, how many nodes


class Nodes:
    """The nodes of a scheduled module, and how to find them."""

    def __init__(self, module: Module, schedule: Schedule) -> None:
        self.module = module
        self.schedule = schedule
        self.shapes, shape_of = module.shape_of
        self.shape = shape_of[schedule.order]
        self.opcode = module.opcode.codes[schedule.order]
        self.count = self.shapes.count[self.shape]
        self.base = np.cumsum(np.r_[0, self.count], dtype=np.int32)
        self.position = np.repeat(np.arange(schedule.length, dtype=np.int32), self.count)

    @property
    def total(self) -> int:
        return int(self.base[-1])

    def is_opcode(self, opcodes: set[str]) -> npt.NDArray[np.bool_]:
        """Per position: whether its opcode is one of these."""
        return is_one_of(Text(self.opcode, self.module.opcode.strings), opcodes)

    def where(self, opcodes: set[str]) -> I32:
        """The positions of these opcodes."""
        return np.flatnonzero(self.is_opcode(opcodes)).astype(np.int32)

    def operand(self, positions: I32, n: int) -> I32:
        """The position of each instruction's n-th operand, -1 where it has none."""
        return at(self.schedule.position, self.module.operands.nth(self.schedule.order[positions], n))

    @cached_property
    def edges(self) -> tuple[I32, I32]:
        """(position of the user, position of the operand) for each scheduled operand."""
        lists, order = self.module.operands, self.schedule.order
        counts = lists.count()[order]
        user = np.repeat(np.arange(len(order), dtype=np.int32), counts)
        operand = at(self.schedule.position, lists.values[spread(lists.begin[order], counts)])
        known = operand >= 0
        return user[known], operand[known]

    def top(self, positions: I32) -> I32:
        """The shape table's node of the whole result; -1 for position -1."""
        return np.where(positions >= 0, self.shapes.begin[self.shape[positions]], -1).astype(np.int32)

    def element(self, positions: I32, index: npt.NDArray[np.integer] | int) -> I32:
        """The shape table's node of one element of the result; -1 where there is none."""
        wanted = np.broadcast_to(np.asarray(index, np.int64), positions.shape)
        return self.shapes.child(self.top(positions), wanted)

    def link(self, target: I32, source: I32, target_node: I32, source_node: I32) -> Range:
        """From nodes `source_node` of positions `source` to `target_node` of `target`; nodes as in the shape table."""
        known = (target >= 0) & (source >= 0) & (target_node >= 0) & (source_node >= 0)
        target, source, target_node, source_node = (c[known] for c in (target, source, target_node, source_node))
        to = self.base[target] + target_node - self.shapes.begin[self.shape[target]]
        fro = self.base[source] + source_node - self.shapes.begin[self.shape[source]]
        return to, fro, np.minimum(self.shapes.extent[target_node], self.shapes.extent[source_node])

    def whole(self, target: int, source: int) -> Range:
        """From the whole result at position `source` to that at `target`."""
        to, fro = np.array([target], np.int32), np.array([source], np.int32)
        return self.link(to, fro, self.top(to), self.top(fro))

    def callees(self, position: int) -> list[int]:
        """Rows of the computations that an instruction calls, in its order."""
        lists, row = self.module.callees, self.schedule.order[position]
        called: list[int] = lists.values[lists.begin[row] : lists.begin[row + 1]].tolist()
        return called

    def root(self, computation: int) -> int:
        """The position of a computation's result."""
        root = self.module.computations["root_id"][computation : computation + 1]
        return int(at(self.schedule.position, self.module.instruction_index.rows(root))[0])

    @cached_property
    def _parameter_table(self) -> tuple[I64, I64, I32]:
        """(computation, parameter number, position) of every scheduled parameter, by computation."""
        positions = self.where({"parameter"})
        rows = self.schedule.order[positions]
        computation = self.module.instructions["parent"][rows]
        order = np.argsort(computation, kind="stable")
        return computation[order], self.module.instructions["parameter_number"][rows[order]], positions[order]

    def parameters(self, computation: int) -> list[tuple[int, int]]:
        """(parameter number, position) of a computation's scheduled parameters."""
        computations, numbers, positions = self._parameter_table
        a, b = np.searchsorted(computations, [computation, computation + 1])
        return list(zip(numbers[a:b].tolist(), positions[a:b].tolist(), strict=True))


def is_one_of(column: Text, names: set[str]) -> npt.NDArray[np.bool_]:
    """Per entry of the column: whether it is one of these."""
    strings = column.strings
    wanted = np.array([strings[i] in names for i in range(len(strings))] + [False])  # code -1: none
    mask: npt.NDArray[np.bool_] = wanted[column.codes]
    return mask


def at(table: npt.NDArray[np.integer], rows: npt.NDArray[np.integer]) -> I32:
    """table[rows], with -1 for row -1."""
    if not len(table):
        return np.full(len(rows), -1, dtype=np.int32)
    return np.where(rows >= 0, table[rows], -1).astype(np.int32)


def within(count: npt.NDArray[np.integer]) -> I64:
    """0, 1, ... count[i] - 1, for each i."""
    steps: I64 = np.arange(int(count.sum())) - np.repeat(np.r_[0, np.cumsum(count)][:-1], count)
    return steps


def spread(first: npt.NDArray[np.integer], count: npt.NDArray[np.integer]) -> I64:
    """first[i], first[i] + 1, ... count[i] of them, for each i."""
    spread: I64 = np.repeat(first, count) + within(count)
    return spread
