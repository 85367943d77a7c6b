"""HloProto in, Recordings out: one per memory space that the program uses."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import Axis, RecordingKind, RegionKind
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Regions
from tb_memplugin.readers.hlo.backend import for_cpu
from tb_memplugin.readers.hlo.caveats import caveats
from tb_memplugin.readers.hlo.columns import columns, take
from tb_memplugin.readers.hlo.dataflow.values import values_of
from tb_memplugin.readers.hlo.lifetimes.placement import Placement, place
from tb_memplugin.readers.hlo.lifetimes.schedule import Schedule, flatten
from tb_memplugin.readers.hlo.lifetimes.scoped_memory import scoped_memory
from tb_memplugin.readers.hlo.lifetimes.uses import Dataflow
from tb_memplugin.readers.hlo.module import Module
from tb_memplugin.readers.hlo.sharding import copies_of, devices_of
from tb_memplugin.readers.hlo.stacks import stacks_of

MEMORY_SPACES = {0: "HBM", 1: "VMEM", 2: "Sflag", 3: "CMEM", 4: "SMEM", 5: "Host", 6: "SparseCore"}


def memory_name(space: int) -> str:
    """The name of an XLA memory space, which is a buffer's colour."""
    return MEMORY_SPACES.get(space, f"Memory space {space}")


def read_hlo(
    data: bytes | memoryview, *, title: str = "", run: str = "", host: str = "", source: str, use_traces: bool = True
) -> list[Recording]:
    """The recordings of one serialized HloProto, in order of memory space.

    `title` defaults to the module's name and id. Raises InputError where the bytes are no compiled program. With
    `use_traces=False` the compiler's own traces are ignored and all lifetimes rebuilt, which tests compare.
    """
    module = Module(data, source)
    schedule = flatten(module)
    dataflow = Dataflow(module, schedule)
    placement = place(module, dataflow, use_traces=use_traces)
    stacks, stack_of = stacks_of(module)
    spaces = np.unique(module.allocations["color"][module.allocations["size"] > 0])
    peak = reported_peak(module, placement)
    table = columns(module, placement, stack_of)
    program = _program(module, schedule, stack_of)
    values = Lazy(partial(values_of, module, dataflow), module.nbytes)
    recordings = []
    for space in spaces.tolist():
        regions = np.flatnonzero(module.allocations["color"] == space)
        rows = np.flatnonzero(module.allocations["color"][placement.region] == space)
        recordings.append(
            Recording(
                kind=RecordingKind.PROGRAM,
                title=title or module.key,
                run=run,
                host=host,
                source=source,
                memory=memory_name(space),
                axis=Axis.PROGRAM_ORDER,
                length=schedule.length,
                allocations=take(table, rows, regions, len(module.allocations["index"])),
                regions=Regions(
                    module.allocations["index"][regions],
                    module.allocations["size"][regions],
                    placement.region_kind[regions],
                ),
                stacks=stacks,
                program=replace(
                    program,
                    memory_space=space,
                    value=placement.buffer[rows].astype(np.int32),
                    values=values,
                    **scoped_memory(module, space)._asdict(),
                ),
                reported_peak=peak,
                caveats=caveats(module, schedule, placement, rows),
            )
        )
    return recordings


def reported_peak(module: Module, placement: Placement) -> int:
    """JAX's `peak_memory_in_bytes`, by XLA's own rule, in bytes over all memory spaces.

    Parameters, constants and outputs count with their largest buffer each; temporaries only as far as traces tell.
    Where there are no traces it is as if the program had no temporaries.
    """
    kind = placement.region_kind
    static = ((kind & RegionKind.THREAD_LOCAL) == 0) & (kind != RegionKind.TEMPORARY)
    largest = np.zeros(len(kind), dtype=np.int64)
    np.maximum.at(largest, placement.region, placement.size)
    return int(largest[static].sum()) + placement.trace_peak


def _program(module: Module, schedule: Schedule, stack_of: I32) -> Program:
    order = schedule.order
    computations = module.names(module.computations["name"])
    devices = devices_of(module)
    return Program(
        module=module.name,
        entry_computation=module.entry_computation,
        memory_space=-1,  # one for each space, see read_hlo
        name=module.names(module.instructions["name"].take(order)),
        op=module.opcode.take(order),
        scope=module.scope.take(order),
        computation=computations.take(module.instructions["parent"][order]),
        stack=stack_of[order],
        devices=devices,
        copies=copies_of(module, devices),
        for_cpu=for_cpu(module),
    )
