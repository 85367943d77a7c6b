"""The largest parts of the memory at a program's peak, in the user's terms: activations of layer_*, logits, parameters.

Parts are disjoint: a role, with a place if the role alone says little. A place is the outermost repeated layer, else
the outermost named scope, else the user's function, else the operation that fills the memory, as for a scan's stacks.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

from tb_memplugin.analysis.dataflow.graph import DataflowGraph, dataflow_graph, shared_memory
from tb_memplugin.analysis.ownership.by_model import copy_scopes
from tb_memplugin.analysis.ownership.forest import DIGITS
from tb_memplugin.analysis.ownership.model_paths import OF_JAX, argument_path, op_path, op_paths
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.source_lines import user_frames
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.fit import PeakPart
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording

MAX_PARTS = 4
MIN_SHARE = 0.01  # a choice: parts below this share of the peak are left out
MAX_SEARCHED = 256  # values that share memory
SCOPE = re.compile(r"[A-Za-z_~][\w.~*-]*(\[[\w*]+\])?")  # a user's name: einsum's "bthd,bshd->bhts" is none
IN_SCAN, STACKED = re.compile(r"(^|/)while/body/"), "dynamic_update_slice"  # a scan's results, one slice per iteration
WORDS = {
    Role.PARAMETER: "parameters",
    Role.OPTIMIZER_STATE: "optimizer state",
    Role.INPUT: "input",
    Role.GRADIENT: "gradients",
    Role.ACTIVATION: "activations",
    Role.OUTPUT: "results",
    Role.CONSTANT: "constants",
    Role.TEMPORARY: "temporary values",
    Role.STATE: "state",
    Role.UNKNOWN: "argument",
}
COMPUTED = {Role.ACTIVATION, Role.GRADIENT, Role.TEMPORARY}
ARGUMENTS = {Role.STATE, Role.INPUT, Role.UNKNOWN}  # their name says more than their role


def peak_parts(recording: Recording) -> tuple[PeakPart, ...]:
    """Return the largest parts of the peak, largest first."""
    top = peak(recording)
    rows = live_rows(recording, top.position)
    places = _Places(recording)
    sizes: dict[tuple[Role, str], int] = defaultdict(int)
    columns = (rows.tolist(), roles(recording)[rows].tolist(), recording.allocations.charge[rows].tolist())
    for row, number, size in zip(*columns, strict=True):
        role = Role(number)
        sizes[role, places.of(row, role) if size >= MIN_SHARE * top.bytes / 8 else ""] += size
    found = []
    for (role, place), size in sizes.items():
        words = WORDS.get(role, role.label)
        between = " " if role in ARGUMENTS else " of "
        found.append(PeakPart(f"{words}{between}{place}" if place else words, size))
    largest = sorted(found, key=lambda part: -part.bytes)[:MAX_PARTS]
    return tuple(part for part in largest if part.bytes >= MIN_SHARE * top.bytes)


class _Places:
    """The places of rows; each text of a scope is parsed once."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._scope = copy_scopes(recording)
        self._known: dict[str, str] = {}
        self._frame = user_frames(recording)
        scope = recording.allocations.op_name
        paths = op_paths(scope.strings.texts(scope.used))
        labels = defaultdict[str, set[str]](set)
        for part in chain.from_iterable(path.parts[:-1] for path in paths):
            if DIGITS.search(part) and SCOPE.fullmatch(part):
                labels[DIGITS.sub("*", part)].add(part)
        self._repeated = {name for name, found in labels.items() if len(found) > 1}  # layers, with * for their numbers
        self._graph = dataflow_graph(recording)
        self._shared = _shared_memory(self._graph) if self._graph is not None else {}

    def of(self, row: int, role: Role) -> str:
        """Return the place of a row; empty if the role says enough, or no place is known."""
        if role not in COMPUTED | ARGUMENTS:
            return ""
        own = (self._scope[row], int(self._recording.allocations.stack[row]))
        if role in ARGUMENTS:
            return next(filter(None, (self._of_argument(scope) for scope, _ in (own, *self._sharing(row)))), "")
        return self._of_scope(own[0]) or next(filter(None, self._of_functions(row, own)), "")

    def _of_functions(self, row: int, own: tuple[str, int]) -> Iterator[str]:
        sharing = list(self._sharing(row))
        for scope, stack in sharing:
            if scope.endswith(STACKED) and IN_SCAN.search(scope):
                function = self._of_scope(scope) or self._function(stack)
                yield f"the scan in {function}" if function else ""
        for scope, stack in (own, *sharing):
            yield self._of_scope(scope) or self._function(stack)
            yield from self._scopes(scope)

    def _of_argument(self, scope: str) -> str:
        return "" if scope.startswith("jit(") else next(iter(argument_path(scope)), "")

    def _of_scope(self, scope: str) -> str:
        if scope not in self._known:
            scopes = list(self._scopes(scope))
            layers = (name for part in scopes if (name := DIGITS.sub("*", part)) in self._repeated)
            named = (part for part in scopes if f"jit({part})" not in scope)  # others are functions
            self._known[scope] = next(chain(layers, named), "")
        return self._known[scope]

    def _scopes(self, scope: str) -> Iterator[str]:
        yield from (part for part in op_path(scope).parts[:-1] if SCOPE.fullmatch(part) and part not in OF_JAX)

    def _function(self, stack: int) -> str:
        """Return the user's function, without `<lambda>` and `<locals>`: from the first `<` to the last `>`."""
        frame = int(self._frame[stack]) if 0 <= stack < len(self._frame) else -1
        function = self._recording.stacks.function[frame].rpartition(".")[2] if frame >= 0 else ""
        start, end = function.find("<"), function.rfind(">")
        return function[:start] + function[end + 1 :] if 0 <= start < end else function

    def _sharing(self, row: int) -> Iterator[tuple[str, int]]:
        """Yield scope and stack of the operations whose values share the row's memory, as in a loop."""
        graph = self._graph
        if graph is None:
            return
        program, first = graph.program, int(graph.value[row])
        todo, seen = [first], {first}
        while todo and len(seen) < MAX_SEARCHED:
            value = todo.pop(0)
            position = int(graph.values.producer[value]) if value >= 0 else -1
            if position >= 0:
                yield program.op_name[position], int(program.stack[position])
            more = [other for other in self._shared.get(value, ()) if other not in seen]
            seen.update(more)
            todo += more


def _shared_memory(graph: DataflowGraph) -> dict[int, list[int]]:
    """Return the values that share memory with each value: carries of loops, and updates in place."""
    found = defaultdict[int, list[int]](list)
    for a, b in zip(*(values.tolist() for values in shared_memory(graph.values)), strict=True):
        found[a].append(b)
        found[b].append(a)
    return found
