"""The costs of each instruction of the schedule: its operations, and the bytes that it moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import F64, I32, take_or_missing
from tb_memplugin.model.program import Costs
from tb_memplugin.readers.hlo.module.flops import MAX_FLOPS, product_flops, runs
from tb_memplugin.readers.hlo.module.program import backend
from tb_memplugin.readers.hlo.module.schedule import Schedule, flatten_schedule
from tb_memplugin.readers.hlo.module.tables import HloModule
from tb_memplugin.readers.hlo.module.traffic import traffic

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
    ended = take_or_missing(schedule.position, module.operands.nth(order, 0))
    flops = product_flops(module, schedule)
    sizes = _moved(module, schedule)
    return Costs(
        name=module.names(order),
        backend=backend(module),
        times=times,
        flops=np.minimum(flops, MAX_FLOPS / times),
        part_of=np.where(starts >= 0, starts, _started_by(module, schedule)),
        ends=np.where(opcode.isin(ENDS), ended, -1).astype(np.int32),
        **sizes._asdict(),
    )


class _Moved(NamedTuple):
    nbytes: F64
    link_bytes: F64
    host_bytes: F64


def _moved(module: HloModule, schedule: Schedule) -> _Moved:
    """Return the bytes that each instruction moves within the device, to other devices and to or from the host."""
    shapes, index = module.instruction_shapes
    order, opcode = schedule.order, module.opcode.take(schedule.order)
    operand = module.operands.nth(order, 0)
    nbytes = shapes.array_bytes()[index]
    source = np.where(operand >= 0, nbytes[operand], 0)
    # A ring of many devices sends every byte once; an all-reduce is a reduce-scatter and an all-gather.
    sent = np.maximum(nbytes[order], source) * np.where(opcode.isin(TWICE_OVER_LINKS), 2.0, 1.0)
    link_bytes = np.where(opcode.isin(OVER_LINKS), sent, 0.0)
    is_on_host = shapes.in_space(HOST_SPACE)[index]
    to_host = opcode.isin({"copy", "copy-start"}) & (is_on_host[order] | ((operand >= 0) & is_on_host[operand]))
    within = traffic(module, order)
    return _Moved(np.where((link_bytes > 0) | to_host, 0.0, within), link_bytes, np.where(to_host, source, 0.0))


def _started_by(module: HloModule, schedule: Schedule) -> I32:
    """Return the position of the asynchronous call that each position belongs to; -1 where it belongs to none."""
    calls = np.flatnonzero(module.is_opcode({"async-start"}))
    called = module.callees.nth(calls, 0)
    position = np.full(len(module.computations["id"]), -1, dtype=np.int32)
    position[called[called >= 0]] = schedule.position[calls[called >= 0]]
    started: I32 = position[module.instructions["parent"][schedule.order]]
    return started
