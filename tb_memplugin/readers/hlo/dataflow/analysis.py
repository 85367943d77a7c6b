"""Uses of each logical buffer over the schedule, followed through instructions that only forward values."""

from functools import partial

import numpy as np

from tb_memplugin.model.arrays import I32, I64, take_or_missing
from tb_memplugin.model.lazy import Lazy, cached_property
from tb_memplugin.native.hlo.liveness import flow_uses, flow_values, use_ranges
from tb_memplugin.readers.hlo.dataflow.fused_operations import FusionOutline
from tb_memplugin.readers.hlo.dataflow.nodes import ResultNodes
from tb_memplugin.readers.hlo.dataflow.pass_through import CALLS, LateOperands, find_flows, loop_back_flows
from tb_memplugin.readers.hlo.module.schedule import Schedule
from tb_memplugin.readers.hlo.module.tables import HloModule

# Instructions that read only the pointer table of a tuple operand.
TOP_ONLY = {"get-tuple-element", "copy"}
# Instructions that read nothing themselves: their operands are read further on.
NO_READ = {"tuple", "while", *CALLS}


def limit_reads(nodes: ResultNodes, count: I64) -> None:
    """Set `count`, the number of nodes of each read, to 1, in place, if reads have far more nodes than the program has.

    Only a damaged file reads whole tuples again and again: each read is a few bytes, but costs as much as the tuple.
    """
    if count.sum() > 16 * (nodes.total + len(count)):
        count[:] = 1


class DataflowAnalysis:
    """Definitions and uses of the logical buffers of a scheduled module."""

    def __init__(self, module: HloModule, schedule: Schedule) -> None:
        self.module = module
        self.schedule = schedule
        self.nodes = ResultNodes(module, schedule)
        self.flows = find_flows(self.nodes)
        self.fusions = Lazy(partial(FusionOutline.of, self.nodes))

    @cached_property
    def defined(self) -> I64:
        """The position of each logical buffer's instruction, -1 where it is not scheduled."""
        return take_or_missing(self.schedule.position, self.module.buffer_instruction).astype(np.int64)

    @cached_property
    def late(self) -> LateOperands:
        """The asynchronous operations that get their operands after their start."""
        return LateOperands.of(self.nodes)

    @cached_property
    def defining_node(self) -> I32:
        """The node that defines each logical buffer, -1 where its instruction is not scheduled."""
        node = self.module.buffer_node
        known = (self.defined >= 0) & (node >= 0)
        found = np.full(len(node), -1, dtype=np.int32)
        found[known] = self.nodes.node_at(self.defined[known], node[known])
        return found

    @cached_property
    def last_used(self) -> I64:
        """The last position that reads each logical buffer, or its definition where nothing reads it.

        The schedule's length where the program returns it; -1 where its instruction is not scheduled.
        """
        nodes = self.nodes
        if not nodes.total:
            return self.defined
        last = np.full(nodes.total, -1, dtype=np.int32)
        self._mark_reads(last)
        self._keep_roots(last)
        defines = np.zeros(nodes.total, dtype=np.uint8)
        defines[self.defining_node[self.defining_node >= 0]] = 1
        # Branches follow each other in the schedule but only one runs, so a branch's result ends with its branch.
        ends = np.where(nodes.is_opcode({"conditional"})[nodes.position], -1, nodes.position)
        flow_uses(last, self.flows.target, self.flows.source, self.flows.count, defines, ends)
        return np.where(self.defining_node >= 0, np.maximum(last[self.defining_node], self.defined), -1)

    @cached_property
    def node_buffer(self) -> I32:
        """The logical buffer of each node; -1 if unknown."""
        value = np.full(self.nodes.total, -1, dtype=np.int32)
        known = np.flatnonzero(self.defining_node >= 0)
        value[self.defining_node[known]] = known
        flow_values(value, self.flows.target, self.flows.source, self.flows.count)
        return value

    @cached_property
    def loop_carried(self) -> tuple[I32, I32]:
        """Pairs (left, right) of logical buffers: left takes over right's content, as in loop carries."""
        value, budget = self.node_buffer, self.module.budget
        forward, backward = self.flows.pairs(budget), loop_back_flows(self.nodes).pairs(budget)
        left = value[np.r_[forward[0], backward[0]]]
        right = value[np.r_[forward[1], backward[1]]]
        pairs = (left >= 0) & (right >= 0) & (left != right)
        return left[pairs], right[pairs]

    def _mark_reads(self, last: I32) -> None:
        """Extend `last` by the reads of every instruction that does more than forward values."""
        user, operand = self.nodes.edges
        reads = ~self.nodes.is_opcode(NO_READ)[user]
        user, operand = user[reads], operand[reads]
        count = np.where(self.nodes.is_opcode(TOP_ONLY)[user], 1, self.nodes.count[operand]).astype(np.int64)
        limit_reads(self.nodes, count)
        use_ranges(last, self.nodes.base[operand], count.astype(np.int32), user)

    def _keep_roots(self, last: I32) -> None:
        """Extend `last` for results: a computation's to its end, and the program's to beyond the schedule."""
        computations, schedule = self.module.computations, self.schedule
        root = take_or_missing(schedule.position, self.module.instruction_index.rows(computations["root_id"]))
        scheduled = (root >= 0) & (schedule.last >= 0)
        end = np.where(schedule.last == schedule.length - 1, schedule.length, schedule.last)[scheduled]
        root = root[scheduled]
        use_ranges(last, self.nodes.base[root], self.nodes.count[root], end.astype(np.int32))
