"""Recordings of a compiled program, one per memory space that it uses, with caveats about assumptions in reading it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import DEVICE_MEMORY, Axis, RecordingKind, RegionKind
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.program import Backend, Program
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Regions
from tb_memplugin.model.text import LazyText, Text, TextSource
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import IS, counted_caveat
from tb_memplugin.readers.common.rows import distinct
from tb_memplugin.readers.hlo.allocation_columns import allocation_columns, select_rows
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.dataflow.fused_operations import fusion_bodies, read_fused
from tb_memplugin.readers.hlo.kernels.memory import VMEM, kernels, scoped_memory
from tb_memplugin.readers.hlo.module.program import argument_shardings, backend, device_count, read_stacks
from tb_memplugin.readers.hlo.module.schedule import Schedule, flatten_schedule, named_loops
from tb_memplugin.readers.hlo.module.tables import HloModule
from tb_memplugin.readers.hlo.placement import LiveRanges, Placement, place_buffers
from tb_memplugin.sizes import agree, counted

if TYPE_CHECKING:
    from tb_memplugin.model.dataflow import DataflowValues
    from tb_memplugin.model.program import Costs


def caveats(module: HloModule, schedule: Schedule, placement: Placement, rows: I64) -> tuple[Caveat, ...]:
    """Return the caveats that concern `rows`, the rows of one memory space."""
    found = []
    rebuilt = rows[placement.rebuilt[rows]]
    if len(rebuilt):
        text = (
            f"The compiler's trace lacks the lifetimes of {counted(len(rebuilt), 'temporary buffer')}. Such lifetimes "
            "are reconstructed from the schedule, uses and aliases, so live bytes are close to the compiler's but may "
            "differ."
        )
        rebuilt_bytes = np.bincount(placement.region[rebuilt], placement.size[rebuilt], len(placement.region_kind))
        nbytes = int(np.minimum(rebuilt_bytes, module.allocations["size"]).sum())
        found.append(Caveat(CaveatCode.LIFETIMES_REBUILT, text, nbytes))
    if not schedule.from_file:
        text = "The program has no schedule; its instructions are assumed to run in the listed order."
        found.append(Caveat(CaveatCode.NO_SCHEDULE, text))
    is_described = placement.buffer[rows] >= 0
    undescribed, described = rows[~is_described], rows[is_described]
    missing = described[module.buffer_instruction[placement.buffer[described]] < 0] if len(described) else described
    found += counted_caveat(
        CaveatCode.UNKNOWN_BUFFERS, len(undescribed), "buffer", IS,
        "assigned memory but not described, and assumed to be live throughout",
        int(placement.size[undescribed].sum()),
    )  # fmt: skip
    found += counted_caveat(
        CaveatCode.UNKNOWN_INSTRUCTIONS, len(missing), "buffer", ("refers", "refer"),
        f"to missing instructions and {agree(len(missing), *IS)} assumed to be live throughout",
        int(placement.size[missing].sum()),
    )  # fmt: skip
    verbs = ("of the compiler's trace is", "of the compiler's trace are")
    count = placement.inconsistent_events
    found += counted_caveat(CaveatCode.INCONSISTENT_EVENTS, count, "event", verbs, "inconsistent and ignored")
    rest = "overwritten before the last use as reconstructed here; each is assumed to end where it is overwritten"
    found += counted_caveat(CaveatCode.REUSED_EARLY, placement.conflicts, "buffer", IS, rest)
    return tuple(found)


# TPU: inferred from the buffers of programs compiled for v4 to 7x. Space 4 has only flags of asynchronous collectives.
MEMORY_SPACES = {0: DEVICE_MEMORY, 1: "VMEM", 2: "Sflag", 3: "CMEM", 5: "Host", 6: "SMEM"}
MAX_SPACES = 64
SPARSE_CORE_SPACES = (8, 10, 11, 12, 15)
GPU_MEMORY_SPACES = {1: "Collective memory", 2: "Temporary memory"}  # parts of device memory


def memory_name(space: int, *, gpu: bool = False) -> str:
    """Return the name of an XLA memory space, which is a buffer's color."""
    if gpu and space in GPU_MEMORY_SPACES:
        return GPU_MEMORY_SPACES[space]
    if space in SPARSE_CORE_SPACES:
        return f"SparseCore {space}"
    return MEMORY_SPACES.get(space, f"Memory space {space}")


def read_hlo(
    data: bytes | memoryview,
    *,
    title: str = "",
    run: str = "",
    host: str = "",
    source: str,
    use_traces: bool = True,
    budget: ReadBudget | None = None,
    ranges: LiveRanges | None = None,
) -> list[Recording]:
    """Read the recordings of a serialized HloProto, in order of memory space.

    `title` defaults to the module's name and id. `use_traces=False` ignores the compiler's heap simulator traces and
    reconstructs all lifetimes, for tests. `budget`: of the program's file. `ranges`: live ranges that the compiler
    reports, which replace those that follow from uses. Raises InputError where the bytes are no compiled program.
    """
    module = HloModule(data, source, budget)
    schedule = flatten_schedule(module)
    dataflow = DataflowAnalysis(module, schedule)
    placement = place_buffers(module, dataflow, use_traces=use_traces, ranges=ranges)
    stacks, leaf_frame = read_stacks(module)
    spaces = distinct(module.allocations["color"][module.allocations["size"] > 0])
    if len(spaces) > MAX_SPACES:
        raise InputError(f"{len(spaces):,} memory spaces in a program", source, "the file is damaged: copy it again")
    peak, main = reported_peak(module, placement), min(spaces.tolist(), default=0)
    table = allocation_columns(module, placement, leaf_frame)
    program = _program(module, schedule, leaf_frame, source)
    values = Lazy(partial(_values, module, dataflow))
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
                memory=memory_name(space, gpu=program.backend is Backend.GPU),
                axis=Axis.PROGRAM_ORDER,
                length=schedule.length,
                allocations=select_rows(table, rows, regions, len(module.allocations["index"])),
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
                    kernels=kernels(module) if space == (VMEM if VMEM in spaces else main) else (),
                    **scoped_memory(module, space)._asdict(),
                ),
                reported_peak=peak if space == main else None,  # of all memories together, so one recording has it
                caveats=caveats(module, schedule, placement, rows),
            )
        )
    return recordings


def _values(module: HloModule, dataflow: DataflowAnalysis) -> DataflowValues:
    from tb_memplugin.readers.hlo.dataflow.values import dataflow_values  # a summary of a program needs none

    return dataflow_values(module, dataflow)


def _costs(data: bytes | memoryview, source: str) -> Costs:
    from tb_memplugin.readers.hlo.module.costs import program_costs  # protobuf takes 60 ms, which other answers save

    return program_costs(data, source)


def reported_peak(module: HloModule, placement: Placement) -> int:
    """Return JAX's `peak_memory_in_bytes`, by XLA's rule, in bytes over all memory spaces.

    Each allocation of parameters, constants or outputs counts with its largest buffer, and temporary memory with the
    traces' peak. Without traces, temporary memory counts as 0.
    """
    kind = placement.region_kind
    static = ((kind & RegionKind.THREAD_LOCAL) == 0) & (kind != RegionKind.TEMPORARY)
    largest = np.zeros(len(kind), dtype=np.int64)
    np.maximum.at(largest, placement.region, placement.size)
    return int(largest[static].sum()) + placement.trace_peak


def _program(module: HloModule, schedule: Schedule, leaf_frame: I32, source: str) -> Program:
    order, texts = schedule.order, module.texts

    def names(positions: I64 | None) -> Text:
        return texts.names(order if positions is None else order[positions])

    def computations(rows: I64 | None) -> Text:
        return texts.distinct_texts(texts.computations.column("name", rows))

    devices = device_count(module)
    return Program(
        module=module.name,
        entry_computation=module.entry_computation,
        memory_space=-1,  # set per memory space in read_hlo
        name=LazyText(TextSource(names), np.arange(len(order))),
        op=module.opcode.take(order),
        op_name=LazyText(texts.op_name, order),
        computation=LazyText(TextSource(computations), module.instructions["parent"][order]),
        stack=leaf_frame[order],
        devices=devices,
        shardings=argument_shardings(module, devices),
        backend=backend(module),
        fused=Lazy(partial(read_fused, texts, *fusion_bodies(module, order))),
        loops=named_loops(module),
        costs=Lazy(partial(_costs, module.data, source)),
    )
