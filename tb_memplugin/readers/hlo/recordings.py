"""HloProto in, Recordings out: one per memory space that the program uses."""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.native.text import join
from tb_memplugin.readers.hlo import shapes
from tb_memplugin.readers.hlo.dataflow import Dataflow
from tb_memplugin.readers.hlo.module import BUFFERS, Lists, Module
from tb_memplugin.readers.hlo.placement import Placement, place
from tb_memplugin.readers.hlo.schedule import Schedule, flatten
from tb_memplugin.readers.hlo.stacks import stacks_of
from tb_memplugin.recording import (
    I32,
    I64,
    Allocations,
    Axis,
    Caveat,
    Program,
    Recording,
    RegionKind,
    Regions,
    Role,
    Stacks,
    Strings,
    Text,
)

MEMORY_SPACES = {0: "HBM", 1: "VMEM", 2: "Sflag", 3: "CMEM", 4: "SMEM", 5: "Host", 6: "SparseCore"}


def memory_name(space: int) -> str:
    """The name of an XLA memory space, which is a buffer's colour."""
    return MEMORY_SPACES.get(space, f"Memory space {space}")


def read_hlo(
    data: bytes | memoryview, *, title: str = "", run: str = "", host: str = "", source: str, use_traces: bool = True
) -> list[Recording]:
    """The recordings of one serialized HloProto, in order of memory space.

    `title` defaults to the module's name. Raises InputError where the bytes are no compiled program. With
    `use_traces=False` the compiler's own traces are ignored and all lifetimes rebuilt, which tests compare.
    """
    module = Module(data, source)
    schedule = flatten(module)
    dataflow = Dataflow(module, schedule)
    placement = place(module, dataflow, use_traces=use_traces)
    stacks, stack_of = stacks_of(module)
    spaces = np.unique(module.allocations["color"][module.allocations["size"] > 0])
    peak = reported_peak(module, placement)
    columns = _columns(module, dataflow, placement, stacks, stack_of)
    recordings = []
    for space in spaces.tolist():
        regions = np.flatnonzero(module.allocations["color"] == space)
        rows = np.flatnonzero(module.allocations["color"][placement.region] == space)
        recordings.append(
            Recording(
                kind="program",
                title=title or module.name,
                run=run,
                host=host,
                source=source,
                memory=memory_name(space),
                axis=Axis.PROGRAM_ORDER,
                length=schedule.length,
                allocations=_take(columns, rows, regions, len(module.allocations["index"])),
                regions=Regions(
                    module.allocations["index"][regions],
                    module.allocations["size"][regions],
                    placement.region_kind[regions],
                ),
                stacks=stacks,
                program=_program(module, schedule, stack_of, space),
                reported_peak=peak,
                caveats=_caveats(module, schedule, placement, rows),
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


def _columns(module: Module, dataflow: Dataflow, placement: Placement, stacks: Stacks, stack_of: I32) -> Allocations:
    """All rows of the module; regions and canonical rows are still numbered over the whole module."""
    buffer = placement.buffer
    known = buffer >= 0
    has_buffers = len(module.buffers["id"]) > 0
    instruction = np.where(known, module.buffer_instruction[buffer], -1) if has_buffers else buffer
    node = np.where(known, module.buffer_node[buffer], -1) if has_buffers else buffer
    shape, dtype, unpadded = _shape_columns(module, node)
    size = placement.size
    return Allocations(
        id=np.where(known, module.buffers["id"][buffer], -1) if has_buffers else buffer.astype(np.int64),
        size=size,
        requested=np.where(node >= 0, np.minimum(unpadded, size), size),
        charge=placement.charge,
        start=placement.start,
        end=placement.end,
        defined=placement.defined,
        last_used=placement.last_used,
        region=placement.region,
        offset=placement.offset,
        canonical=placement.canonical,
        role=_roles(placement)[placement.region],
        stack=np.where(instruction >= 0, stack_of[instruction], -1).astype(np.int32),
        name=_names(module, buffer, instruction),
        shape=shape,
        dtype=dtype,
        op=_of_instructions(module.opcode, instruction),
        scope=_of_instructions(module.scope, instruction),
    )


def _roles(placement: Placement) -> np.ndarray:
    """Per region, the first that applies."""
    kind = placement.region_kind
    rules = [
        (RegionKind.PARAMETER, Role.PARAMETER),
        (RegionKind.OUTPUT, Role.OUTPUT),
        (RegionKind.THREAD_LOCAL, Role.THREAD_LOCAL),
        (RegionKind.CONSTANT, Role.CONSTANT),
    ]
    return np.select([(kind & k) != 0 for k, _ in rules], [int(role) for _, role in rules], int(Role.TEMPORARY)).astype(
        np.uint8
    )


def _of_instructions(column: Text, instruction: I32) -> Text:
    return Text(np.where(instruction >= 0, column.codes[instruction], -1).astype(np.int32), column.strings)


def _names(module: Module, buffer: I32, instruction: I32) -> Text:
    """The defining instruction's name, and the shape index within its result: `fusion.3{1}`."""
    names = module.names(module.instructions["name"].take(np.maximum(instruction, 0)))
    path = Lists.of(module.tables[f"{BUFFERS}.defined_at.shape_index"], len(module.buffers["id"]))
    indices = _index_texts(path, buffer)
    nothing = np.where(instruction >= 0, names.codes, -1).astype(np.int32)
    joined = Strings(
        *join(
            names.strings.blob, names.strings.offsets, nothing,
            indices.strings.blob, indices.strings.offsets, indices.codes,
        )
    )  # fmt: skip
    return Text(np.arange(len(buffer), dtype=np.int32), joined)


def _index_texts(path: Lists, buffer: I32) -> Text:
    """`{1,0}` of each buffer, empty at the top of a shape. Distinct indices are few: each is written once."""
    count = np.where(buffer >= 0, path.count()[buffer], 0) if len(path.begin) > 1 else np.zeros(len(buffer), int)
    depth = int(count.max(initial=0))
    if not depth:
        return Text(np.full(len(buffer), -1, dtype=np.int32), Strings.of([]))
    columns = np.stack([np.where(count > d, path.nth(buffer, d), -1) for d in range(depth)], axis=1)
    distinct, code = np.unique(columns, axis=0, return_inverse=True)
    texts = ["{" + ",".join(str(i) for i in row if i >= 0) + "}" if row[0] >= 0 else "" for row in distinct.tolist()]
    return Text(code.ravel().astype(np.int32), Strings.of(texts))


def _shape_columns(module: Module, node: I32) -> tuple[Text, Text, I64]:
    """Shape text, dtype and unpadded bytes per row; each distinct shape is looked at once. Node -1 is unknown."""
    table, _ = module.shape_of
    distinct, code = np.unique(node, return_inverse=True)
    protos = [table.protos[n] if n >= 0 else None for n in distinct.tolist()]
    texts = Strings.of([shapes.text(p) if p is not None else "" for p in protos])
    dtypes = Strings.of([shapes.dtype(p) if p is not None else "" for p in protos])
    unpadded = np.array([shapes.unpadded_bytes(p) if p is not None else 0 for p in protos], dtype=np.int64)
    codes = code.astype(np.int32)
    return Text(codes, texts), Text(codes, dtypes), unpadded[code]


def _take(columns: Allocations, rows: I64, regions: I64, n_regions: int) -> Allocations:
    """The rows of one memory space, with regions and canonical rows numbered within it."""
    region_number = np.full(n_regions, -1, dtype=np.int32)
    region_number[regions] = np.arange(len(regions))
    row_number = np.full(len(columns), -1, dtype=np.int32)
    row_number[rows] = np.arange(len(rows))
    taken = {name: getattr(columns, name) for name in Allocations.__slots__}
    taken = {name: c.take(rows) if isinstance(c, Text) else c[rows] for name, c in taken.items()}
    taken["region"] = region_number[taken["region"]]
    taken["canonical"] = row_number[taken["canonical"]]
    return Allocations(**taken)


def _program(module: Module, schedule: Schedule, stack_of: I32, space: int) -> Program:
    order = schedule.order
    computations = module.names(module.computations["name"])
    scoped, whose = scoped_memory(module, space)
    return Program(
        module=module.name,
        entry_computation=module.entry_computation,
        memory_space=space,
        name=module.names(module.instructions["name"].take(order)),
        op=module.opcode.take(order),
        scope=module.scope.take(order),
        computation=computations.take(module.instructions["parent"][order]),
        stack=stack_of[order],
        scoped_bytes=scoped,
        scoped_instruction=whose,
    )


SCOPED = re.compile(
    rb'"used_scoped_memory_configs":\[\{([^\]]*)\}\]',
)
SCOPED_FIELD = re.compile(rb'"(memory_space|size)":"?(\d+)"?')


def scoped_memory(module: Module, space: int) -> tuple[int, str]:
    """(bytes, instruction) of the largest scoped allocation in a memory space: scratch that no buffer shows.

    TPU programs tell it in the instructions' backend configuration, which is JSON.
    """
    best, whose = 0, ""
    if space == 0:  # the main memory has no scoped allocations, and its programs are the long ones
        return best, whose
    spans = module.instructions["backend_config"]
    for found in SCOPED.finditer(module.data):
        for entry in found.group(1).split(b"},{"):
            fields = {key: int(value) for key, value in SCOPED_FIELD.findall(entry)}
            if fields.get(b"memory_space", 0) == space and fields.get(b"size", 0) > best:
                row = int(np.argmax((spans.start <= found.start()) & (found.start() < spans.start + spans.length)))
                best, whose = fields[b"size"], module.word(module.instructions["name"], row)
    return best, whose


def _caveats(module: Module, schedule: Schedule, placement: Placement, rows: I64) -> tuple[Caveat, ...]:
    """What had to be guessed, for the rows of one memory space."""
    caveats = []
    rebuilt = np.intersect1d(placement.rebuilt, rows)
    if len(rebuilt):
        claimed = np.bincount(placement.region[rebuilt], placement.size[rebuilt], len(placement.region_kind))
        caveats.append(
            Caveat(
                "lifetimes_rebuilt",
                f"The compiler left no trace of when {len(rebuilt)} temporary buffers live. Their lifetimes are "
                "rebuilt from the schedule, the uses and the aliases, so live bytes are close but not the compiler's.",
                int(np.minimum(claimed, module.allocations["size"]).sum()),
            )
        )
    if not schedule.from_file:
        caveats.append(
            Caveat(
                "no_schedule", "The program has no schedule; its instructions are taken in the order they are listed."
            )
        )
    lost = rows[placement.buffer[rows] < 0]
    if len(lost):
        caveats.append(
            Caveat(
                "unknown_buffers",
                f"{len(lost)} buffers are placed but not described; they are taken to live all along.",
                int(placement.size[lost].sum()),
            )
        )
    described = rows[placement.buffer[rows] >= 0]
    missing = described[module.buffer_instruction[placement.buffer[described]] < 0] if len(described) else described
    if len(missing):
        caveats.append(
            Caveat(
                "unknown_instructions",
                f"{len(missing)} buffers name instructions that the program lacks; they are taken to live all along.",
                int(placement.size[missing].sum()),
            )
        )
    if placement.odd_events:
        caveats.append(
            Caveat(
                "odd_events", f"{placement.odd_events} events of the compiler's trace make no sense and are left out."
            )
        )
    if placement.conflicts:
        caveats.append(
            Caveat(
                "reused_early",
                f"{placement.conflicts} buffers are overwritten while our reading of the program still needs them; "
                "each is taken to end there.",
            )
        )
    return tuple(caveats)
