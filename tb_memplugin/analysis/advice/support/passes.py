"""A program's passes and layers: where its rows are computed and read, forward or backward, and in which layer."""

import re
from dataclasses import dataclass

import numpy as np

from tb_memplugin.analysis.advice.support.layer_code import function_of, is_of_library, layer_code, layer_lines
from tb_memplugin.analysis.dataflow.graph import DataflowGraph, dataflow_graph, uses
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.model_paths import OpPath, Pass, op_paths
from tb_memplugin.model.arrays import I32, I64, U8, Mask, largest_per, marked, smallest_per
from tb_memplugin.model.dataflow import DataflowValues
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.recording import Recording

PASSES = tuple(Pass)
NUMBERED = re.compile(r"\d+")
UNKNOWN = "layer = jax.checkpoint(layer)"
PRODUCTS = ("dot_general", "conv_general_dilated", "ragged_dot")
MIN_PRODUCTS = 3  # so many in a row begin another forward pass: compilers hardly repeat products in a backward pass


@dataclass(frozen=True)
class Layers:
    """A repeated part of a program: scopes that differ only by a number, `layer_*`, or iterations of a loop."""

    name: str
    several: str  # count and noun
    code: str  # that wraps one of them in jax.checkpoint
    count: int
    instance: I32  # per position: the number of its layer, -1 for none


class ProgramPasses:
    """The passes of one program in one memory space. Programs without training have a single pass."""

    def __init__(self, recording: Recording, graph: DataflowGraph) -> None:
        self.values = graph.values
        self.value, self.is_argument = graph.value, graph.is_argument  # per row
        self.program = graph.program
        self.op_name, self.op, self.stack = graph.program.op_name, graph.program.op, graph.program.stack  # per position
        self.stacks = recording.stacks
        self.length = recording.length
        begin, read_at = uses(recording)
        self.uses = np.repeat(np.arange(len(self.value)), np.diff(begin)), read_at.astype(np.int64)  # (row, position)

    @cached_property
    def paths(self) -> list[OpPath]:
        """The path of each distinct op_name of the schedule; the last entry is of an empty one."""
        return op_paths([*self.op_name.strings, ""])

    @cached_property
    def named_by(self) -> I32:
        """The position whose name and call stack apply to each position.

        Compilers add copies without names, such as between memory spaces. A copy gets the name of the operation that
        computes the largest value that it reads.
        """
        known = np.array(["/" in text for text in self.op_name.strings] + [False])
        named = known[self.op_name.codes] | self.op.isin({"parameter"})
        values, at = self.values, np.arange(self.length, dtype=np.int32)
        reader = values.used_value
        moved = np.flatnonzero(~named[values.use] & (values.producer[reader] >= 0))
        moved = moved[np.argsort(values.elements[reader[moved]], kind="stable")]
        source = at.copy()
        source[values.use[moved]] = values.producer[reader[moved]]  # of several the largest
        source = np.minimum(source, at)  # a loop's carry leads back
        for _ in range(self.length.bit_length()):
            further = np.where(named[source], source, source[source])
            if (further == source).all():
                break
            source = further
        return np.where(named[source], source, at)

    @property
    def is_named(self) -> Mask:
        """A mask of the positions that have a name of their own."""
        named: Mask = self.named_by == np.arange(self.length)
        return named

    @cached_property
    def scope_code(self) -> I32:
        """The code in `scope.strings` of the name that applies to each position."""
        return self.op_name.codes[self.named_by]

    @cached_property
    def pass_of_position(self) -> U8:
        """The index in PASSES of each position's pass, by its op_name.

        Operations of the forward pass that the compiler repeats within the backward pass are rematerialized.
        """
        found = np.array([PASSES.index(path.training_pass) for path in self.paths], dtype=np.uint8)[self.scope_code]
        forward, backward = PASSES.index(Pass.FORWARD), PASSES.index(Pass.BACKWARD)
        product = np.flatnonzero(self.does(*PRODUCTS) & np.isin(found, (forward, backward)))
        begins = np.flatnonzero(np.diff(found[product], prepend=found.dtype.type(len(PASSES))))
        runs = (np.diff(np.r_[begins, len(product)]) >= MIN_PRODUCTS) & (found[product[begins]] == forward)
        # After a backward position, forward operations are late, until another forward pass begins.
        again = np.zeros(self.length, dtype=np.int64)
        again[product[begins[runs]]] = 1
        section = np.cumsum(again)
        begun = self._reading(found == forward) & (found == backward)
        sections = int(section[-1]) + 1 if self.length else 1
        # The compiler may move a single operation, such as the derivative of dropout, far ahead of its pass.
        multiplies = marked(self.length, product) | marked(self.length, self.values.products.position)
        after = np.flatnonzero(multiplies & (found == backward))
        turned = smallest_per(section[after], after, sections, self.length)
        before = np.flatnonzero(multiplies & (found == forward) & (np.arange(self.length) < turned[section]))
        last = largest_per(section[before], before, sections, -1)
        begun &= np.arange(self.length) > last[section]
        first = smallest_per(section[begun], np.flatnonzero(begun), sections, self.length)
        late = (found == forward) & (np.arange(self.length) > first[section])
        return np.where(late, PASSES.index(Pass.REMATERIALIZED), found).astype(np.uint8)

    def _reading(self, computed: Mask) -> Mask:
        """Mark the positions that read a value which one of the positions `computed` computes."""
        values = self.values
        producer = values.producer[values.used_value]
        return marked(self.length, values.use[(producer >= 0) & computed[np.maximum(producer, 0)]])

    @cached_property
    def backward_begins(self) -> int:
        """The first position of the backward pass that reads a value of the forward pass; the length without one."""
        begun = self._reading(self.within(Pass.FORWARD)) & self.within(Pass.BACKWARD)
        return int(np.argmax(begun)) if begun.any() else self.length

    def within(self, which: Pass) -> Mask:
        """Mark the positions of a pass."""
        inside: Mask = self.pass_of_position == PASSES.index(which)
        return inside

    @cached_property
    def operation(self) -> list[str]:
        """The operation of each distinct op_name: the last part of its path. The last entry is of an empty one."""
        return [path.parts[-1] if path.parts else "" for path in self.paths]

    def does(self, *operations: str) -> Mask:
        """Mark the positions of these operations."""
        return np.array([name in operations for name in self.operation])[self.scope_code]

    @cached_property
    def made(self) -> I64:
        """The position that computes each row, -1 if unknown."""
        return np.where(self.value >= 0, self.values.producer[self.value], -1).astype(np.int64)

    def last_use(self, among: Mask) -> I64:
        """Return the last of the positions `among` that reads each row, -1 for none."""
        row, position = self.uses
        chosen = among[position]
        return largest_per(row[chosen], position[chosen], len(self.value), -1)

    def first_use(self, among: Mask) -> I64:
        """Return the first of the positions `among` that reads each row, the program's length for none."""
        row, position = self.uses
        chosen = among[position]
        return smallest_per(row[chosen], position[chosen], len(self.value), self.length)

    @cached_property
    def layers(self) -> list[Layers]:
        """The outermost families of scopes that differ only by a number, in the order in which they run."""
        families: dict[str, dict[str, list[int]]] = {}
        ways: list[list[tuple[str, str]]] = []
        for code, path in enumerate(self.paths):
            numbered = [depth for depth, part in enumerate(path.parts[:-1]) if NUMBERED.search(part)]
            ways.append([])
            for depth in numbered:
                outer, prefix = "/".join(path.parts[:depth]), "/".join(path.parts[: depth + 1])
                merged = "/".join(filter(None, (outer, NUMBERED.sub("*", path.parts[depth]))))
                families.setdefault(merged, {}).setdefault(prefix, []).append(code)
                ways[-1].append((merged, prefix))
        outermost: dict[str, dict[str, list[int]]] = {}
        for code, way in enumerate(ways):
            if several := next(((merged, prefix) for merged, prefix in way if len(families[merged]) > 1), None):
                outermost.setdefault(several[0], {}).setdefault(several[1], []).append(code)
        found = [self._family(name, members) for name, members in outermost.items() if len(members) > 1]
        return [layers for layers in found if layers is not None]

    def _family(self, name: str, members: dict[str, list[int]]) -> Layers | None:
        """Return layers of a name; None for a library's own modules, which are too small to be recomputed."""
        ahead = np.flatnonzero(self.within(Pass.FORWARD))
        first = smallest_per(self.scope_code[ahead], ahead, len(self.paths), self.length)
        instance = np.full(len(self.paths), -1, dtype=np.int32)
        for number, codes in enumerate(sorted(members.values(), key=lambda codes: int(first[codes].min()))):
            instance[codes] = number
        of_position = instance[self.scope_code]
        inside, outside = ahead[of_position[ahead] >= 0], ahead[of_position[ahead] < 0]
        lines = layer_lines(self.stacks, self.stack[inside], self.stack[outside])
        if is_of_library(self.stacks, self.stack[inside], lines):
            return None
        frame = function_of(self.stacks, self.stack[inside], lines)
        comment = f"the function of one {name}"
        code = layer_code(self.stacks, frame, self.stack[inside], comment) if frame >= 0 else f"{UNKNOWN}  # {comment}"
        return Layers(name, f"{len(members):,} {name}", code, len(members), of_position)


def largest_made(values: DataflowValues, amount: I64, length: int) -> I64:
    """Return the largest amount of the values that each position computes, such as their numbers of elements."""
    made = values.producer >= 0
    return largest_per(values.producer[made], amount[made], length)


@memoize
def program_passes(recording: Recording) -> ProgramPasses | None:
    """Return a program's passes; None if it has no data flow."""
    graph = dataflow_graph(recording)
    return ProgramPasses(recording, graph) if graph is not None else None
