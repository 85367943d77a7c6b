"""How far each buffer is used: its reads over the schedule, followed through what only passes values on."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.native.hlo.liveness import flow_uses, flow_values, use_ranges
from tb_memplugin.readers.hlo.dataflow.nodes import Nodes, at
from tb_memplugin.readers.hlo.dataflow.pass_through import CALLS, back_edges, flows
from tb_memplugin.readers.hlo.lifetimes.schedule import Schedule
from tb_memplugin.readers.hlo.module import Module

# These look only at the pointer table of a tuple operand.
SHALLOW = {"get-tuple-element", "copy"}
# These read nothing themselves: what they are given is read where it flows to.
NO_USE = {"tuple", "while", *CALLS}


class Dataflow:
    """Reads of the buffers of one scheduled module."""

    def __init__(self, module: Module, schedule: Schedule) -> None:
        self.module = module
        self.schedule = schedule
        self.nodes = Nodes(module, schedule)
        self.flows = flows(self.nodes)

    @cached_property
    def defined(self) -> I64:
        """Per logical buffer: the position of its instruction, -1 where it is not scheduled."""
        return at(self.schedule.position, self.module.buffer_instruction).astype(np.int64)

    @cached_property
    def buffer_at(self) -> I32:
        """Per logical buffer: the node that defines it, -1 where its instruction is not scheduled."""
        nodes, node = self.nodes, self.module.buffer_node
        known = (self.defined >= 0) & (node >= 0)
        p = self.defined[known]
        found = np.full(len(node), -1, dtype=np.int32)
        found[known] = nodes.base[p] + node[known] - nodes.shapes.begin[nodes.shape[p]]
        return found

    @cached_property
    def last_used(self) -> I64:
        """Per logical buffer: the last position that reads it, at least where it is defined.

        The schedule's length where it leaves the program; -1 where its instruction is not scheduled.
        """
        nodes = self.nodes
        if not nodes.total:
            return self.defined
        last = np.full(nodes.total, -1, dtype=np.int32)
        self._reads(last)
        self._hold_roots(last)
        defines = np.zeros(nodes.total, dtype=np.uint8)
        defines[self.buffer_at[self.buffer_at >= 0]] = 1
        # Only one branch runs, but the schedule has them one after another: a branch's result ends with its branch.
        ends = np.where(nodes.is_opcode({"conditional"})[nodes.position], -1, nodes.position)
        flow_uses(last, self.flows.target, self.flows.source, self.flows.count, defines, ends)
        return np.where(self.buffer_at >= 0, np.maximum(last[self.buffer_at], self.defined), -1)

    @cached_property
    def shown(self) -> I32:
        """Per node: the logical buffer that it shows, -1 where none is known."""
        value = np.full(self.nodes.total, -1, dtype=np.int32)
        known = np.flatnonzero(self.buffer_at >= 0)
        value[self.buffer_at[known]] = known
        flow_values(value, self.flows.target, self.flows.source, self.flows.count)
        return value

    @cached_property
    def carries(self) -> tuple[I32, I32]:
        """Pairs of logical buffers that one memory serves in turn: what goes into a loop, its carry, its result.

        The left one takes over what the right one holds.
        """
        value, along, against = self.shown, self.flows.pairs(), back_edges(self.nodes).pairs()
        left = value[np.r_[along[0], against[0]]]
        right = value[np.r_[along[1], against[1]]]
        pairs = (left >= 0) & (right >= 0) & (left != right)
        return left[pairs], right[pairs]

    def _reads(self, last: I32) -> None:
        """By every instruction that does not merely pass on."""
        user, operand = self.nodes.edges
        reads = ~self.nodes.is_opcode(NO_USE)[user]
        user, operand = user[reads], operand[reads]
        count = np.where(self.nodes.is_opcode(SHALLOW)[user], 1, self.nodes.count[operand])
        use_ranges(last, self.nodes.base[operand], count.astype(np.int32), user)

    def _hold_roots(self, last: I32) -> None:
        """A computation's result is held to its end; the program's beyond it."""
        computations, schedule = self.module.computations, self.schedule
        root = at(schedule.position, self.module.instruction_index.rows(computations["root_id"]))
        entered = (root >= 0) & (schedule.last >= 0)
        until = np.where(schedule.last == schedule.length - 1, schedule.length, schedule.last)[entered]
        root = root[entered]
        use_ranges(last, self.nodes.base[root], self.nodes.count[root], until.astype(np.int32))
