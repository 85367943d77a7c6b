"""True roles of the bytes at a program's peak, from the arguments' true roles and JAX's names of operations.

Roles come from data flow, so the truth comes from elsewhere: a buffer of the backward pass has an operation named
`transpose(`, and a gradient has a parameter's dimensions as well. A row has several roles that are right where experts
would differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tb_memplugin.analysis.dataflow.graph import dataflow_graph, owning_argument
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.dataflow import Derivation
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.hlo_pb2 import HloProto

MOVING = {"bitcast", "copy", "copy-done", "copy-start", "convert", "transpose", "reshape", "get-tuple-element"}
PREFETCHES = {"copy", "copy-start", "slice", "custom-call", "bitcast"}
DIMENSIONS = re.compile(r"\[([\d,]*)\]")
FORWARD, BACKWARD = "jvp(", "transpose("


@dataclass(frozen=True)
class PeakRow:
    """A row that is live at the peak, with its role and those that are right."""

    name: str
    shape: str
    bytes: int
    role: Role
    right: frozenset[Role]
    reason: str


class PeakTruth:
    """The rows at the peak of one recording, judged."""

    def __init__(self, proto: bytes, recording: Recording, truth: dict[str, Role], dimensions: list[list[int]]) -> None:
        graph, program = dataflow_graph(recording), recording.program
        assert graph is not None and program is not None and program.value is not None
        self.recording, self.graph, self.value = recording, graph, program.value
        self.truth = truth  # role by path
        self.names = operation_names(proto)
        # A loop over layers computes the gradient of one layer at a time.
        self.trained = {_essence(d) for shape in dimensions for d in (shape, shape[1:]) if d}
        self.owner = owning_argument(graph, around_loops=True)

    def rows(self) -> Iterator[PeakRow]:
        shown, rows = roles(self.recording), self.recording.allocations
        for row in live_rows(self.recording, peak(self.recording).position).tolist():
            right, reason = self._judge(row)
            yield PeakRow(
                rows.name[row], rows.shape[row], int(rows.charge[row]), Role(shown[row]), frozenset(right), reason
            )

    def _judge(self, row: int) -> tuple[set[Role], str]:
        kind = int(self.recording.regions.kind[self.recording.allocations.region[row]])
        if kind & RegionKind.PARAMETER:
            argument = self._argument_of_region.get(int(self.recording.allocations.region[row]))
            return ({argument} if argument else set(Role)), "argument"
        if kind != RegionKind.TEMPORARY:
            return {Role(int(self.recording.allocations.role[row]))}, "recorded"
        owner = int(self.owner[self.value[row]])
        if (argument := self._argument_roles.get(owner)) is not None:
            return {
                Role.PARAMETER: {Role.PARAMETER},
                Role.OPTIMIZER_STATE: {Role.OPTIMIZER_STATE, Role.TEMPORARY},
            }.get(argument, {argument, Role.TEMPORARY, Role.ACTIVATION}), f"from an argument, {argument.name}"
        group = self._group(int(self.value[row]))
        names = [self.names.get(self.recording.allocations.name[row], ""), *(self._name(value) for value in group)]
        own, (readers, moved) = next((name for name in names if name), ""), self._readers(group)
        of_parameter = _essence(_dimensions(self.recording.allocations.shape[row])) in self.trained
        if BACKWARD in own:
            return self._of_backward(own, of_parameter, readers), own
        if FORWARD in own:
            if any(BACKWARD in reader for reader in readers):
                return {Role.ACTIVATION}, own
            return {Role.TEMPORARY, *({Role.ACTIVATION} if any(BACKWARD in name for name in moved) else {})}, own
        if self._trains:
            return {Role.TEMPORARY, *({Role.GRADIENT} if of_parameter else {Role.ACTIVATION})}, own or "no name"
        return {Role.TEMPORARY}, own

    def _of_backward(self, own: str, of_parameter: bool, readers: set[str]) -> set[Role]:
        if "rematted_computation" in own:
            return {Role.TEMPORARY, Role.ACTIVATION}
        if not of_parameter:
            return {Role.TEMPORARY}
        updates = any(FORWARD not in reader for reader in readers)
        return {Role.GRADIENT} if updates or not readers else {Role.GRADIENT, Role.TEMPORARY}

    @cached_property
    def _trains(self) -> bool:
        return any(BACKWARD in name for name in self.names.values())

    @cached_property
    def _argument_roles(self) -> dict[int, Role]:
        """The true role of each argument's value, in all memories."""
        program, values, found = self.recording.program, self.graph.values, {}
        assert program is not None
        for value in np.flatnonzero((values.argument >= 0) & (values.producer >= 0)).tolist():
            role = self.truth.get(symbol(program.op_name[int(values.producer[value])]))
            if role is not None:
                found[value] = role
        return found

    @cached_property
    def _argument_of_region(self) -> dict[int, Role]:
        rows = np.flatnonzero(self.value >= 0)
        roles_of = {int(v): role for v, role in self._argument_roles.items()}
        region = self.recording.allocations.region
        return {int(region[r]): roles_of[int(self.value[r])] for r in rows.tolist() if int(self.value[r]) in roles_of}

    def _group(self, value: int) -> list[int]:
        """Return the values that share memory with this one: carries of loops, and updates in place; itself first."""
        found, todo = [value], [value]
        while todo:
            for other in self._shared.get(todo.pop(), ()):
                if other not in found:
                    found.append(other)
                    todo.append(other)
        return found

    @cached_property
    def _shared(self) -> dict[int, list[int]]:
        values, shared = self.graph.values, dict[int, list[int]]()
        in_place = values.derivations.kind == Derivation.IN_PLACE
        one = np.r_[values.loop_carried[0], values.derivations.source[in_place]]
        other = np.r_[values.loop_carried[1], values.derivations.target[in_place]]
        same = values.shape[one] == values.shape[other]
        for a, b in zip(one[same].tolist(), other[same].tolist(), strict=True):
            shared.setdefault(a, []).append(b)
            shared.setdefault(b, []).append(a)
        return shared

    def _name(self, value: int) -> str:
        position = int(self.graph.values.producer[value])
        assert self.recording.program is not None
        return self.names.get(self.recording.program.name[position], "") if position >= 0 else ""

    def _readers(self, group: list[int]) -> tuple[set[str], set[str]]:
        """Return the names of the operations that read one of these values or a copy of it.

        The second set has those that read what operations without a name made of it.
        """
        values, program = self.graph.values, self.recording.program
        assert program is not None
        direct, moved = set[str](), set[str]()
        todo, seen = [(value, direct) for value in group], set(group)
        while todo:
            value, found = todo.pop(0)
            for position in values.use[values.use_begin[value] : values.use_begin[value + 1]].tolist():
                name, op = self.names.get(program.name[position], ""), program.op[position]
                if name and op not in MOVING:
                    found.add(name)
                    continue
                copies = {other for copy in self._made_at.get(position, ()) for other in self._group(copy)} - seen
                todo += [(copy, found if op in PREFETCHES else moved) for copy in copies]
                seen |= copies
        return direct, moved

    @cached_property
    def _made_at(self) -> dict[int, list[int]]:
        made = dict[int, list[int]]()
        for value, position in enumerate(self.graph.values.producer.tolist()):
            made.setdefault(position, []).append(value)
        return made


def operation_names(proto: bytes) -> dict[str, str]:
    """Return the name of each instruction's operation, and of each element of a fusion's result (`fusion.3{1}`).

    Copies without a name have that of the copied value.
    """
    module = HloProto.FromString(proto).hlo_module
    by_id = {i.id: i for c in module.computations for i in c.instructions}
    roots = {c.id: by_id.get(c.root_id) for c in module.computations}

    def name(instruction: Any, depth: int = 0) -> str:
        if instruction is None or instruction.metadata.op_name or depth > 8:
            return str(instruction.metadata.op_name.decode()) if instruction is not None else ""
        if instruction.opcode == b"fusion" and instruction.called_computation_ids:
            return name(roots[instruction.called_computation_ids[0]], depth + 1)
        if instruction.opcode.decode() in MOVING and instruction.operand_ids:
            return name(by_id.get(instruction.operand_ids[0]), depth + 1)
        return ""

    found = {i.name.decode(): name(i) for i in by_id.values()}
    for i in by_id.values():
        root = roots.get(i.called_computation_ids[0]) if i.opcode == b"fusion" and i.called_computation_ids else None
        if root is not None and root.opcode == b"tuple":
            for n, operand in enumerate(root.operand_ids):
                found[f"{i.name.decode()}{{{n}}}"] = name(by_id.get(operand)) or found[i.name.decode()]
    return found


def _dimensions(shape: str) -> list[int]:
    found = DIMENSIONS.search(shape)
    return [int(n) for n in found[1].split(",") if n] if found else []


def _essence(dimensions: list[int]) -> tuple[int, ...]:
    """Return the dimensions without their order and those of one, as compilers transpose and reshape."""
    return tuple(sorted(n for n in dimensions if n != 1))


def symbol(path: str) -> str:
    """Return a path without what separates its keys, which differs between versions of JAX."""
    return re.sub(r"\W+", "_", path).strip("_")
