"""ResultNodes: the numbered (instruction, shape index) pairs of a schedule, which XLA calls HloPositions.

The instruction at position p has the nodes from `base[p]`, numbered like those of its shape (see ShapeTable).
"""

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64, Mask, concatenate_ranges, marked, take_or_missing
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.native.hlo.liveness import edges
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.module.columns import begin_of_rows, sparse_numbers
from tb_memplugin.readers.hlo.module.schedule import Schedule
from tb_memplugin.readers.hlo.module.tables import INSTRUCTIONS, HloModule

ROW_BYTES = 48  # of an expanded range: several columns of 8 bytes at a time
NODE_BYTES = 64  # of the columns with a row per node
NodeRanges = tuple[I32, I32, I32]  # columns: first node of the target, first node of the source, number of nodes


class ResultNodes:
    """The nodes of a scheduled module, with lookups by position, opcode and operand."""

    def __init__(self, module: HloModule, schedule: Schedule) -> None:
        self.module = module
        self.schedule = schedule
        self.shapes, shape_index = module.instruction_shapes
        self.shape = shape_index[schedule.order]
        self.opcode = module.opcode.codes[schedule.order]
        self.count = self.shapes.count[self.shape]
        # A schedule may list an instruction with a large tuple again and again.
        module.budget.charge(NODE_BYTES * int(self.count.sum(dtype=np.int64)))
        self.base = np.cumsum(np.r_[0, self.count], dtype=np.int32)
        self.position = np.repeat(np.arange(schedule.length, dtype=np.int32), self.count)

    @property
    def budget(self) -> ReadBudget:
        return self.module.budget

    @property
    def total(self) -> int:
        return int(self.base[-1])

    def is_opcode(self, opcodes: set[str]) -> Mask:
        """Return a mask of the positions with one of these opcodes."""
        return marked(len(self.opcode), self.positions_of(opcodes))

    def positions_of(self, opcodes: set[str]) -> I32:
        """Return the positions with one of these opcodes, rising."""
        order, begin = self._by_opcode
        codes = [code for name in opcodes if (code := self.module.opcode_codes.get(name)) is not None]
        return np.sort(np.concatenate([order[:0], *(order[begin[code + 1] : begin[code + 2]] for code in codes)]))

    @cached_property
    def _by_opcode(self) -> tuple[I32, I64]:
        """Return the positions by opcode, and where those of each begin; the first are those without an opcode."""
        codes, n = self.opcode + 1, len(self.module.opcode_codes) + 1
        # NumPy sorts numbers of 16 bits by counting them.
        order = np.argsort(codes.astype(np.uint16) if n < 1 << 16 else codes, kind="stable").astype(np.int32)
        return order, begin_of_rows(codes, n)

    def operand(self, positions: I32, n: int) -> I32:
        """Return the position of each instruction's n-th operand, -1 where it does not exist."""
        return take_or_missing(self.schedule.position, self.module.operands.nth(self.schedule.order[positions], n))

    def operands_of(self, positions: I32) -> tuple[I32, I32, I64]:
        """Return (user, position of the operand or -1, its number) for all operands of these instructions, in order."""
        lists, rows = self.module.operands, self.schedule.order[positions]
        count = lists.count()[rows]
        nth = range_offsets(count, self.budget)
        operand = lists.values[np.repeat(lists.begin[rows], count) + nth]
        return np.repeat(positions, count), take_or_missing(self.schedule.position, operand), nth

    @cached_property
    def edges(self) -> tuple[I32, I32]:
        """(user position, operand position) of each scheduled operand."""
        lists, order = self.module.operands, self.schedule.order
        counts = lists.count()[order]
        self.budget.check(ROW_BYTES * int(counts.sum()))
        return edges(order, lists.begin, lists.values.astype(np.int32, copy=False), self.schedule.position)

    def top(self, positions: I32) -> I32:
        """Return the shape-table node of each position's whole result; -1 for position -1."""
        return np.where(positions >= 0, self.shapes.begin[self.shape[positions]], -1).astype(np.int32)

    def element(self, positions: I32, index: npt.NDArray[np.integer] | int | None) -> I32:
        """Return the shape-table node of one element of each position's result; -1 where it does not exist.

        Without an index, the element is the whole result.
        """
        if index is None:
            return self.top(positions)
        wanted = np.broadcast_to(np.asarray(index, np.int64), positions.shape)
        return self.shapes.child(self.top(positions), wanted)

    def node_at(self, positions: npt.NDArray[np.integer], shape_node: npt.NDArray[np.integer]) -> I32:
        """Return the node of each position's result that has this node in the shape table."""
        found: I32 = self.base[positions] + shape_node - self.shapes.begin[self.shape[positions]]
        return found

    def value_of(self, node_buffer: I32, positions: I32) -> I32:
        """Return the value of each position's whole result, by the value of each node; -1 for position -1."""
        return np.where(positions >= 0, node_buffer[self.base[np.maximum(positions, 0)]], -1).astype(np.int32)

    def link(self, target: I32, source: I32, target_node: I32, source_node: I32) -> NodeRanges:
        """Link `source_node` of positions `source` to `target_node` of `target`; nodes are of the shape table."""
        known = (target >= 0) & (source >= 0) & (target_node >= 0) & (source_node >= 0)
        target, source, target_node, source_node = (c[known] for c in (target, source, target_node, source_node))
        count = np.minimum(self.shapes.extent[target_node], self.shapes.extent[source_node])
        return self.node_at(target, target_node), self.node_at(source, source_node), count

    def link_results(self, target: int, source: int) -> NodeRanges:
        """Link the whole result at position `source` to that at `target`."""
        to, source_nodes = np.array([target], np.int32), np.array([source], np.int32)
        return self.link(to, source_nodes, self.top(to), self.top(source_nodes))

    def callees(self, position: int) -> list[int]:
        """Return the rows of the computations that an instruction calls, in its order."""
        lists, row = self.module.callees, self.schedule.order[position]
        called: list[int] = lists.values[lists.begin[row] : lists.begin[row + 1]].tolist()
        return called

    def root(self, computation: int) -> int:
        """Return the position of a computation's result, -1 where it is not scheduled."""
        root = self.module.computations["root_id"][computation : computation + 1]
        return int(take_or_missing(self.schedule.position, self.module.instruction_index.rows(root))[0])

    @cached_property
    def _parameter_table(self) -> tuple[I64, I64, I32]:
        """(computation, parameter number, position) of every scheduled parameter, by computation."""
        positions = self.positions_of({"parameter"})
        rows = self.schedule.order[positions]
        computation = self.module.instructions["parent"][rows]
        order = np.argsort(computation, kind="stable")
        numbers = sparse_numbers(self.module.tables[f"{INSTRUCTIONS}.parameter_number"], rows[order])
        return computation[order], numbers, positions[order]

    def parameters(self, computation: int) -> list[tuple[int, int]]:
        """List the (parameter number, position) of a computation's scheduled parameters."""
        computations, numbers, positions = self._parameter_table
        a, b = np.searchsorted(computations, [computation, computation + 1])
        return list(zip(numbers[a:b].tolist(), positions[a:b].tolist(), strict=True))


def range_offsets(count: npt.NDArray[np.integer], budget: ReadBudget) -> I64:
    """Return 0, 1, ... count[i] - 1 for each i, concatenated. InputError where that exceeds the budget."""
    return expand_ranges(np.zeros_like(count), count, budget)


def expand_ranges(first: npt.NDArray[np.integer], count: npt.NDArray[np.integer], budget: ReadBudget) -> I64:
    """Return first[i], first[i] + 1, ... (count[i] numbers) for each i, concatenated.

    InputError where that exceeds the budget.
    """
    budget.check(ROW_BYTES * int(count.sum(dtype=np.int64)))
    return concatenate_ranges(first, count)
