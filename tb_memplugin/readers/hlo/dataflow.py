"""How far each buffer is used: its uses over the schedule, followed through what only passes values on.

A node is one (instruction, shape index) of the schedule; instruction at position p owns the nodes from `base[p]`,
numbered as its shape's (see ShapeTable). A flow says that some nodes show the same values as others: through
tuple, get-tuple-element, bitcast, the -done half of asynchronous operations, calls, loops and branches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_memplugin.native.liveness import flow_uses, flow_values, use_ranges
from tb_memplugin.readers.hlo.module import Module
from tb_memplugin.readers.hlo.schedule import Schedule
from tb_memplugin.recording import I32, I64

# Opcodes whose whole result shows operand 0.
PASS_ON = {"bitcast", "optimization-barrier", "add-dependency", "domain", "all-reduce-done", "async-update"}
# Asynchronous halves. The start's tuple shows its operand at element {0}, or at {1} for copy-start, whose {0} is
# the copy; the done shows an element of the start: {0} for copies and receives, {1} for the others.
START_SHOWS_OPERAND = {"copy-start": 1, "send": 0, "all-gather-start": 0, "collective-permute-start": 0}
DONE_SHOWS_START = {"copy-done": 0, "recv-done": 0, "all-gather-done": 1, "collective-permute-done": 1, "async-done": 1}
CALLS = {"call", "async-start"}
# These look only at the pointer table of a tuple operand, or at nothing.
SHALLOW = {"get-tuple-element", "copy"}
NO_USE = {"tuple", "while", *CALLS}  # what they are given is used where it flows to


@dataclass(frozen=True)
class Flows:
    """`count[i]` nodes from `dst[i]` on show those from `src[i]` on; in rising order of dst."""

    dst: I32
    src: I32
    count: I32


class Dataflow:
    """Uses of the buffers of one scheduled module."""

    def __init__(self, module: Module, schedule: Schedule) -> None:
        self.module = module
        self.schedule = schedule
        shapes, shape_of = module.shape_of
        self.opcode = module.opcode.codes[schedule.order]
        self.shape = shape_of[schedule.order]
        self.nodes = shapes.count[self.shape]
        self.base = np.cumsum(np.r_[0, self.nodes], dtype=np.int32)
        self.node_position = np.repeat(np.arange(schedule.length, dtype=np.int32), self.nodes)

    @cached_property
    def buffer_at(self) -> I32:
        """Per logical buffer: the node that defines it, -1 where its instruction is not scheduled."""
        position = _at(self.schedule.position, self.module.buffer_instruction)
        shapes, _ = self.module.shape_of
        node = self.module.buffer_node
        known = (position >= 0) & (node >= 0)
        at = np.full(len(node), -1, dtype=np.int32)
        p = position[known]
        at[known] = self.base[p] + node[known] - shapes.begin[self.shape[p]]
        return at

    @cached_property
    def defined(self) -> I64:
        """Per logical buffer: the position of its instruction, -1 where it is not scheduled."""
        return _at(self.schedule.position, self.module.buffer_instruction).astype(np.int64)

    @cached_property
    def value(self) -> I32:
        """Per node: the logical buffer whose memory it shows, -1 where none."""
        value = np.full(int(self.base[-1]), -1, dtype=np.int32)
        known = np.flatnonzero(self.buffer_at >= 0)
        value[self.buffer_at[known]] = known
        flow_values(value, self.flows.dst, self.flows.src, self.flows.count)
        return value

    @cached_property
    def last_used(self) -> I64:
        """Per logical buffer: the last position that reads it (at least where it is defined).

        The schedule's length where it leaves the program; -1 where its instruction is not scheduled.
        """
        total = int(self.base[-1])
        last = np.full(total, -1, dtype=np.int32)
        use_ranges(last, *self._uses())
        self._hold_roots(last)
        defines = np.zeros(total, dtype=np.uint8)
        defines[self.buffer_at[self.buffer_at >= 0]] = 1
        flow_uses(last, self.flows.dst, self.flows.src, self.flows.count, defines, self.node_position)
        if not total:
            return self.defined
        return np.where(self.buffer_at >= 0, np.maximum(last[self.buffer_at], self.defined), -1)

    @cached_property
    def carries(self) -> tuple[I32, I32]:
        """Pairs of logical buffers that one memory serves in turn: what goes into a loop, its carry, what comes out."""
        flows = [self.flows, self._back_edges()]
        dst = np.concatenate([_spread(f.dst, f.count) for f in flows])
        src = np.concatenate([_spread(f.src, f.count) for f in flows])
        left, right = self.value[dst], self.value[src]
        pairs = (left >= 0) & (right >= 0) & (left != right)
        return left[pairs], right[pairs]

    def _uses(self) -> tuple[I32, I32, I32]:
        """(first node, nodes, position) of every read by an instruction that does not merely pass on."""
        user, operand = self._edges()
        keep = ~self._is(NO_USE)[user]
        user, operand = user[keep], operand[keep]
        shallow = self._is(SHALLOW)[user]
        return self.base[operand], np.where(shallow, 1, self.nodes[operand]), user

    def _edges(self) -> tuple[I32, I32]:
        """(position of the user, position of the operand) for each scheduled operand."""
        lists, order = self.module.operands, self.schedule.order
        counts = lists.count()[order]
        user = np.repeat(np.arange(len(order), dtype=np.int32), counts)
        at = np.arange(len(user)) + np.repeat(lists.begin[order] - np.r_[0, np.cumsum(counts)][:-1], counts)
        operand = _at(self.schedule.position, lists.values[at])
        known = operand >= 0
        return user[known], operand[known]

    def _hold_roots(self, last: I32) -> None:
        """A computation's result is held to its end; the program's beyond it."""
        computations = self.module.computations
        root = _at(self.schedule.position, self.module.instruction_index.rows(computations["root_id"]))
        until = self.schedule.last
        entered = (root >= 0) & (until >= 0)
        held = np.where(until == self.schedule.length - 1, self.schedule.length, until)[entered]
        r = root[entered]
        use_ranges(last, self.base[r], self.nodes[r], held.astype(np.int32))

    @cached_property
    def flows(self) -> Flows:
        pieces = [self._pass_on(), self._elements(), self._tuples(), self._asynchronous(), *self._calls()]
        dst, src, count = (np.concatenate(column).astype(np.int32) for column in zip(*pieces, strict=True))
        order = np.argsort(dst, kind="stable")
        return Flows(dst[order], src[order], count[order])

    def _operand(self, positions: I64, n: int) -> I32:
        """The position of each instruction's n-th operand, -1 where it has none."""
        return _at(self.schedule.position, self.module.operands.nth(self.schedule.order[positions], n))

    def _link(self, dst: I32, src: I32, dst_node: I32, src_node: I32) -> tuple[I32, I32, I32]:
        """Flow from node `src_node` of positions `src` to node `dst_node` of `dst`; nodes as in the shape table."""
        shapes, _ = self.module.shape_of
        known = (dst >= 0) & (src >= 0) & (dst_node >= 0) & (src_node >= 0)
        dst, src, dst_node, src_node = dst[known], src[known], dst_node[known], src_node[known]
        to = dst_node - shapes.begin[self.shape[dst]]
        fro = src_node - shapes.begin[self.shape[src]]
        count = np.minimum(shapes.extent[dst_node], shapes.extent[src_node])
        return self.base[dst] + to, self.base[src] + fro, count

    def _top(self, positions: I32) -> I32:
        """The shape table's node of the whole result; -1 for position -1."""
        shapes, _ = self.module.shape_of
        return np.where(positions >= 0, shapes.begin[self.shape[positions]], -1).astype(np.int32)

    def _element(self, positions: I32, index: npt.NDArray[np.integer] | int) -> I32:
        shapes, _ = self.module.shape_of
        return shapes.child(self._top(positions), np.broadcast_to(np.asarray(index, np.int64), positions.shape))

    def _pass_on(self) -> tuple[I32, I32, I32]:
        dst = self._where(PASS_ON)
        src = self._operand(dst, 0)
        return self._link(dst, src, self._top(dst), self._top(src))

    def _elements(self) -> tuple[I32, I32, I32]:
        dst = self._where({"get-tuple-element"})
        src = self._operand(dst, 0)
        index = self.module.instructions["tuple_index"][self.schedule.order[dst]]
        return self._link(dst, src, self._top(dst), self._element(src, index))

    def _tuples(self) -> tuple[I32, I32, I32]:
        tuples = self._where({"tuple"})
        lists, rows = self.module.operands, self.schedule.order[tuples]
        counts = lists.count()[rows]
        dst = np.repeat(tuples, counts)
        index = np.arange(len(dst)) - np.repeat(np.r_[0, np.cumsum(counts)][:-1], counts)
        src = _at(self.schedule.position, lists.values[np.repeat(lists.begin[rows], counts) + index])
        return self._link(dst, src, self._element(dst, index), self._top(src))

    def _asynchronous(self) -> tuple[I32, I32, I32]:
        pieces = []
        for table, start in ((START_SHOWS_OPERAND, True), (DONE_SHOWS_START, False)):
            for opcode, element in table.items():
                dst = self._where({opcode})
                src = self._operand(dst, 0)
                there, here = (self._element(dst, element), self._top(src)) if start else (
                    self._top(dst), self._element(src, element))  # fmt: skip
                pieces.append(self._link(dst, src, there, here))
        return _stack(pieces)

    def _calls(self) -> list[tuple[I32, I32, I32]]:
        """Arguments into parameters, results out: `call`, `async-start`, `while`, `conditional`.

        There are few of them, and few parameters each (a loop carries one tuple), so this is a plain loop.
        """
        pieces = []
        for p in self._where({*CALLS, "while", "conditional"}).tolist():
            opcode = self.module.opcode[int(self.schedule.order[p])]
            for branch, callee in enumerate(self._callees(p)):
                for number, parameter in self._parameters(callee):
                    argument = branch + 1 if opcode == "conditional" else number
                    pieces.append(self._whole(parameter, int(self._operand(np.array([p]), argument)[0])))
                if opcode == "while" and branch:
                    continue  # its second computation is the condition, whose result goes nowhere
                root = self._root(callee)
                if opcode == "async-start":  # (arguments, result, context)
                    here, there = np.array([p], np.int32), np.array([root], np.int32)
                    pieces.append(self._link(here, there, self._element(here, 1), self._top(there)))
                else:
                    pieces.append(self._whole(p, root))
        return pieces

    def _back_edges(self) -> Flows:
        """From a loop body's result to its parameter: the next turn."""
        pieces = [_stack([])]
        for p in self._where({"while"}).tolist():
            for callee in self._callees(p)[:1]:
                pieces += [self._whole(parameter, self._root(callee)) for _, parameter in self._parameters(callee)]
        return Flows(*_stack(pieces))

    def _whole(self, dst: int, src: int) -> tuple[I32, I32, I32]:
        d, s = np.array([dst], np.int32), np.array([src], np.int32)
        return self._link(d, s, self._top(d), self._top(s))

    def _callees(self, position: int) -> list[int]:
        lists, row = self.module.callees, self.schedule.order[position]
        called: list[int] = lists.values[lists.begin[row] : lists.begin[row + 1]].tolist()
        return [c for c in called if c >= 0]

    def _root(self, computation: int) -> int:
        root = self.module.computations["root_id"][computation : computation + 1]
        return int(_at(self.schedule.position, self.module.instruction_index.rows(root))[0])

    @cached_property
    def _parameter_table(self) -> tuple[I64, I64, I32]:
        """(computation, parameter number, position) of every scheduled parameter, by computation."""
        positions = self._where({"parameter"})
        rows = self.schedule.order[positions]
        computation = self.module.instructions["parent"][rows]
        order = np.argsort(computation, kind="stable")
        return computation[order], self.module.instructions["parameter_number"][rows[order]], positions[order]

    def _parameters(self, computation: int) -> list[tuple[int, int]]:
        """(parameter number, position) of a computation's scheduled parameters."""
        computations, numbers, positions = self._parameter_table
        a, b = np.searchsorted(computations, [computation, computation + 1])
        return list(zip(numbers[a:b].tolist(), positions[a:b].tolist(), strict=True))

    def _is(self, opcodes: set[str]) -> npt.NDArray[np.bool_]:
        """Per position: whether its opcode is one of these."""
        strings = self.module.opcode.strings
        wanted = np.array([strings[i] in opcodes for i in range(len(strings))] + [False])  # code -1: no opcode
        mask: npt.NDArray[np.bool_] = wanted[self.opcode]
        return mask

    def _where(self, opcodes: set[str]) -> I32:
        return np.flatnonzero(self._is(opcodes)).astype(np.int32)


def _at(table: npt.NDArray[np.integer], rows: npt.NDArray[np.integer]) -> I32:
    """table[rows], with -1 for row -1."""
    if not len(table):
        return np.full(len(rows), -1, dtype=np.int32)
    return np.where(rows >= 0, table[rows], -1).astype(np.int32)


def _spread(first: I32, count: I32) -> I64:
    """first[i], first[i] + 1, ... count[i] of them, for each i."""
    within = np.arange(int(count.sum())) - np.repeat(np.r_[0, np.cumsum(count)][:-1], count)
    spread: I64 = np.repeat(first, count) + within
    return spread


def _stack(pieces: list[tuple[I32, I32, I32]]) -> tuple[I32, I32, I32]:
    none = np.empty(0, dtype=np.int32)
    dst, src, count = zip((none, none, none), *pieces, strict=True)
    return np.concatenate(dst), np.concatenate(src), np.concatenate(count)
