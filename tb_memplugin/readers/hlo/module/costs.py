"""The costs of each instruction of the schedule: its operations, and the bytes that it moves, reads and writes.

An instruction that slices an array reads only the slice, and one that updates a part of an array in place writes only
that part. In a loop over layers, whose arguments are the weights of all layers, this decides.
"""

from __future__ import annotations

import numpy as np
from google.protobuf.message import DecodeError

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import F64, I32, I64, Mask, take_or_missing
from tb_memplugin.model.program import Costs
from tb_memplugin.readers.common.rows import IdIndex
from tb_memplugin.readers.hlo.dataflow.fusions import COPYING, ELEMENTWISE, FusedComputations
from tb_memplugin.readers.hlo.dataflow.nodes import range_offsets
from tb_memplugin.readers.hlo.module.flops import MAX_FLOPS, product_flops, runs
from tb_memplugin.readers.hlo.module.program import backend
from tb_memplugin.readers.hlo.module.schedule import CALLING_OPCODES, Schedule, flatten_schedule
from tb_memplugin.readers.hlo.module.tables import HloModule

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast")
TWICE_OVER_LINKS = {"all-reduce", "all-reduce-start"}  # as a reduce-scatter and an all-gather
OVER_LINKS = {*COLLECTIVES, *(f"{name}-start" for name in COLLECTIVES)}
STARTS = {"async-start", "copy-start", *(f"{name}-start" for name in COLLECTIVES)}
HOST_SPACE = 5  # of pinned memory of the host
ENDS = {name.replace("-start", "-done") for name in STARTS}


def program_costs(data: bytes | memoryview, source: str) -> Costs:
    """Read the costs of a serialized HloProto. InputError where the bytes are no compiled program, or are damaged."""
    try:
        return _costs(HloModule(data, source))
    except InputError:
        raise
    except (DecodeError, ValueError):
        raise InputError("the compiled program is damaged", source, "compile it again") from None


def _costs(module: HloModule) -> Costs:
    schedule = flatten_schedule(module)
    order, opcode = schedule.order, module.opcode.take(schedule.order)
    times = runs(module)[module.instructions["parent"][order]]
    starts = np.where(opcode.isin(STARTS), np.arange(len(order)), -1).astype(np.int32)
    flops = product_flops(module, schedule)
    shapes, index = module.instruction_shapes
    operand = module.operands.nth(order, 0)
    nbytes = shapes.array_bytes()[index]
    source = np.where(operand >= 0, nbytes[operand], 0)
    # A ring of many devices sends every byte once; an all-reduce is a reduce-scatter and an all-gather.
    sent = np.maximum(nbytes[order], source) * np.where(opcode.isin(TWICE_OVER_LINKS), 2.0, 1.0)
    link_bytes = np.where(opcode.isin(OVER_LINKS), sent, 0.0)
    is_on_host = shapes.in_space(HOST_SPACE)[index]
    to_host = opcode.isin({"copy", "copy-start"}) & (is_on_host[order] | ((operand >= 0) & is_on_host[operand]))
    return Costs(
        name=module.names(order),
        backend=backend(module),
        times=times,
        flops=np.minimum(flops, MAX_FLOPS / times),
        nbytes=np.where((link_bytes > 0) | to_host, 0.0, traffic(module, order)),
        link_bytes=link_bytes,
        host_bytes=np.where(to_host, source, 0.0),
        part_of=np.where(starts >= 0, starts, _started_by(module, schedule)),
        ends=np.where(opcode.isin(ENDS), take_or_missing(schedule.position, operand), -1).astype(np.int32),
    )


def _started_by(module: HloModule, schedule: Schedule) -> I32:
    """Return the position of the asynchronous call that each position belongs to; -1 where it belongs to none."""
    calls = np.flatnonzero(module.is_opcode({"async-start"}))
    called = module.callees.nth(calls, 0)
    position = np.full(len(module.computations["id"]), -1, dtype=np.int32)
    position[called[called >= 0]] = schedule.position[calls[called >= 0]]
    started: I32 = position[module.instructions["parent"][schedule.order]]
    return started


SLICING = {"slice", "dynamic-slice", "gather"}
UPDATING = {"dynamic-update-slice"}
# They move nothing, or what they call or end is counted by itself.
FREE = CALLING_OPCODES | {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier", "add-dependency",
    "partition-id", "replica-id", "async-done", "async-update", "copy-done", "all-reduce-done", "all-gather-done",
    "collective-permute-done", "send-done", "recv-done",
}  # fmt: skip
SAME_PART = ELEMENTWISE | COPYING  # a part of their result needs the same part of their operands
ROUNDS = 8  # instructions in a row, and fusions inside each other, through which a part is followed
MAX_PARAMETERS = 1 << 20  # of a fusion


def traffic(module: HloModule, order: I64) -> F64:
    """Return the bytes that the instruction at each position of the schedule reads and writes, each time it runs."""
    shapes, index = module.instruction_shapes
    nbytes = shapes.array_bytes()[index].astype(np.float64)
    operands, opcode = module.operands, module.opcode
    totals = np.r_[0.0, np.cumsum(np.where(operands.values >= 0, nbytes[operands.values], 0.0))]
    found: F64 = totals[operands.begin[1:]] - totals[operands.begin[:-1]] + nbytes
    is_slice, updates = opcode.isin(SLICING), np.flatnonzero(opcode.isin(UPDATING))
    found[is_slice] = 2 * nbytes[is_slice]
    update = operands.nth(updates, 1)
    found[updates] = 2 * np.where(update >= 0, nbytes[update], 0.0)
    copies = np.flatnonzero(opcode.isin({"copy-start"}))  # whose results are the copy, the original and a context
    copied = operands.nth(copies, 0)
    found[copies] = 2 * np.where(copied >= 0, nbytes[copied], 0.0)
    is_allocation = opcode.isin({"custom-call"}) & (operands.count() == 0)  # the TPU compiler's AllocateBuffer
    found[opcode.isin(FREE) | is_allocation] = 0.0
    fusions = np.flatnonzero(opcode.isin({"fusion"}))
    called = module.callees.nth(fusions, 0)
    known = called >= 0
    if known.any():
        found[fusions[known]] = _Bodies(module, called[known]).traffic()
    return found[order]


class _Bodies:
    """The instructions inside of fusions, and of fusions inside of these, as edges from operands to their users."""

    def __init__(self, module: HloModule, called: I64) -> None:
        rows = np.unique(called)
        for _ in range(ROUNDS):
            body = FusedComputations(module, rows)
            inner = body.callees.nth(np.flatnonzero(body.opcode.isin({"fusion"})), 0)
            more = np.union1d(rows, inner[inner >= 0])
            if len(more) == len(rows):
                break
            rows = more
        self.body, self.count = body, len(body.count)
        self.called = np.searchsorted(rows, called)
        self.root = body.index.rows(module.computations["root_id"][rows])
        user = np.repeat(np.arange(self.count), body.count)
        known = body.operand >= 0
        self.user, self.operand = user[known], body.operand[known]
        self.nth = range_offsets(body.count, module.budget)[known]
        nested = np.where(body.opcode.isin({"fusion"})[self.user], body.callees.nth(self.user, 0), -1)
        self.inner = np.where(np.isin(nested, rows), np.searchsorted(rows, nested), -1)

    def traffic(self) -> F64:
        """Return the bytes that each of the called fusions reads and writes."""
        body, root = self.body, self.root[self.called]
        read = np.r_[0.0, np.cumsum(np.where(body.is_parameter, self._used() * body.nbytes, 0.0))]
        written = np.where(root >= 0, self._written()[root], 0.0)
        found: F64 = read[body.stop[self.called]] - read[body.first[self.called]] + written
        return found

    def _used(self) -> F64:
        """Return the part of each instruction's result that its users need, between 0 and 1."""
        ratio = self.body.nbytes[self.user] / np.maximum(self.body.nbytes[self.operand], 1)
        fixed = np.where(self._is_user(SLICING, 0), np.minimum(ratio, 1.0), 1.0)
        fixed[self._is_user(UPDATING, 0)] = 0.0
        same, parameter = self._is_user(SAME_PART), self._parameters()
        is_used = np.bincount(self.operand, minlength=self.count) > 0
        part = np.ones(self.count)
        for _ in range(ROUNDS):
            of_edge = np.where(parameter >= 0, part[parameter], np.where(same, part[self.user], fixed))
            part = np.where(is_used, np.minimum(np.bincount(self.operand, of_edge, self.count), 1.0), 1.0)
        return part

    def _written(self) -> F64:
        """Return the bytes that each instruction would write as the root of a fusion."""
        nbytes, user, operand = self.body.nbytes, self.user, self.operand
        part = np.ones(self.count)
        updates, passed = self._is_user(UPDATING, 1), self._is_user(COPYING, 0)
        part[user[updates]] = nbytes[operand[updates]] / np.maximum(nbytes[user[updates]], 1)
        root = np.where(self.inner >= 0, self.root[self.inner], -1)
        for _ in range(ROUNDS):
            part[user[passed]] = part[operand[passed]]
            part[user[root >= 0]] = part[root[root >= 0]]
        written = part * nbytes
        in_tuple = self.body.is_tuple[user]
        of_tuples = np.bincount(user[in_tuple], written[operand[in_tuple]], self.count)
        return np.where(self.body.is_tuple, of_tuples, written)

    def _parameters(self) -> I32:
        """Return the parameter of an inner fusion that each edge leads to; -1 for other edges."""
        rows = np.flatnonzero(self.body.is_parameter)
        which = np.searchsorted(self.body.stop, rows, side="right")
        number = np.clip(self.body.parameter_number[rows], 0, MAX_PARAMETERS - 1)
        wanted = np.where(self.inner >= 0, self.inner * MAX_PARAMETERS + self.nth, -1)
        return take_or_missing(rows, IdIndex(which * MAX_PARAMETERS + number).rows(wanted))

    def _is_user(self, opcodes: set[str], nth: int | None = None) -> Mask:
        """Return a mask of the edges to these opcodes, as the operand of this number; None: as any."""
        found: Mask = self.body.opcode.isin(opcodes)[self.user]
        return found if nth is None else found & (self.nth == nth)
