"""The backend of a program, its devices, the shardings of its arguments over these, and call stacks of instructions."""

from collections.abc import Iterator
from math import prod

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.program import ArgumentShardings, Backend, MeshAxis, NamedSharding
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.native.row_groups import group_rows
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.text.strings import intern
from tb_memplugin.readers.hlo.module.columns import Lists
from tb_memplugin.readers.hlo.module.tables import CONFIGS, HloModule

# Each backend attaches its own configuration to some instructions: JSON, whose first field is the backend's own.
CONFIG_PREFIXES = {
    b'{"outer_dimension_partitions":': Backend.CPU,
    b'{"operation_queue_id":': Backend.GPU,
    b'{"flag_configs":': Backend.TPU,
}
LONGEST = max(map(len, CONFIG_PREFIXES))
MAX_CONFIGS = 16  # configurations to check. One suffices, and a file may have thousands.


def backend(module: HloModule) -> Backend:
    """Return the XLA backend that compiled a program. Small programs may lack configurations.

    Only TPU programs have layouts with tiles of two dimensions.
    """
    configurations = module.tables[CONFIGS]["value"]
    starts = configurations.start[np.flatnonzero(configurations.length)[:MAX_CONFIGS]]
    for start in starts.tolist():
        text = bytes(module.data[start : start + LONGEST])
        for prefix, made_by in CONFIG_PREFIXES.items():
            if text.startswith(prefix):
                return made_by
    shapes, _ = module.instruction_shapes
    tiled = any(len(tile) > 1 for shape in shapes.distinct for tile in shape.layout.tiles)
    return Backend.TPU if tiled else Backend.UNKNOWN


SHARDINGS = "hlo_module.spmd_parameters_shardings"
AXES = f"{SHARDINGS}.named_sharding.mesh.axes"
DIMENSIONS = f"{SHARDINGS}.named_sharding.dim_shardings"
MAX_DEVICES = 2**24  # a damaged file may contain any number
# Of XLA's OpSharding. The other types place an array on one device or leave it to the program.
REPLICATED, TILED = 0, 3
OBJECT_BYTES = 400  # of an axis or a reference to one


def argument_shardings(module: HloModule, devices: int) -> ArgumentShardings | None:
    """Return the shardings of the arguments' leaves; None where the file lacks them or the program has one device."""
    rows = len(module.tables[SHARDINGS]["type"])
    if not rows or devices < 2:
        return None
    (copies, parts), code = _by_tiles(module, devices), np.full(rows, -1, dtype=np.int32)
    distinct: dict[NamedSharding, int] = {}
    for row, sharding in _named_shardings(module):
        copies[row] = max(devices // sharding.parts, 1)
        parts[row] = tuple(prod(axis.size for axis in axes) for axes in sharding.dimensions)
        code[row] = distinct.setdefault(sharding, len(distinct))
    mesh = next((sharding.mesh for sharding in distinct), None)
    if mesh is not None:  # JAX writes no mesh for an argument that is replicated on all devices
        code[(code < 0) & (copies == devices)] = distinct.setdefault(NamedSharding(mesh, ()), len(distinct))
    return ArgumentShardings(np.clip(copies, 1, devices).astype(np.int32), code, tuple(distinct), tuple(parts))


def _by_tiles(module: HloModule, devices: int) -> tuple[I64, list[tuple[int, ...]]]:
    """Return how many devices have the same shard of each leaf, and the parts of its dimensions, by its tiles."""
    table = module.tables[SHARDINGS]
    kind, rows = table["type"], len(table["type"])
    tiles = Lists.of(module.tables[f"{SHARDINGS}.tile_assignment_dimensions"], rows)
    kinds = Lists.of(module.tables[f"{SHARDINGS}.last_tile_dims"], rows)
    replicas = np.ones(rows, dtype=np.int64)
    replicas[kind == REPLICATED] = devices
    parts: list[tuple[int, ...]] = [()] * rows
    for row in np.flatnonzero((kind == TILED) & (tiles.count() > 0)).tolist():
        extents = np.clip(tiles.values[tiles.begin[row] : tiles.begin[row + 1]], 1, devices).tolist()
        roles = kinds.values[kinds.begin[row] : kinds.begin[row + 1]].tolist()
        if table["replicate_on_last_tile_dim"][row]:
            replicas[row] = extents[-1]
        for extent, role in zip(extents[::-1], roles[::-1], strict=False):
            replicas[row] = min(replicas[row] * extent, devices) if role == REPLICATED else replicas[row]
        further = len(roles) or int(table["replicate_on_last_tile_dim"][row] != 0)  # dimensions that split nothing
        parts[row] = tuple(extents[: len(extents) - further])
    return replicas, parts


def _named_shardings(module: HloModule) -> Iterator[tuple[int, NamedSharding]]:
    """Yield the leaves with a named sharding, each with its sharding."""
    axes, references = module.tables[AXES], module.tables[f"{DIMENSIONS}.axes"]
    name, size = module.interned_texts(axes["name"]), np.clip(axes["size"], 1, MAX_DEVICES)
    module.budget.charge(OBJECT_BYTES * (len(axes["size"]) + len(references["parent"])))
    mesh_begin = np.searchsorted(axes["parent"], np.arange(len(module.tables[SHARDINGS]["type"]) + 1))
    dimension_begin = np.searchsorted(module.tables[DIMENSIONS]["parent"], np.arange(len(mesh_begin)))
    begin = np.searchsorted(references["parent"], np.arange(len(module.tables[DIMENSIONS]["parent"]) + 1))
    number, part = references["mesh_axis_index"].tolist(), references["sub_axis_info.size"].tolist()
    for row in np.flatnonzero(np.diff(mesh_begin)).tolist():
        mesh = tuple(MeshAxis(name[at], int(size[at])) for at in range(mesh_begin[row], mesh_begin[row + 1]))
        dimensions = tuple(
            tuple(
                mesh[number[at]]._replace(**({"size": part[at]} if part[at] > 0 else {}))
                for at in range(begin[dimension], begin[dimension + 1])
                if 0 <= number[at] < len(mesh)
            )
            for dimension in range(dimension_begin[row], dimension_begin[row + 1])
        )
        yield row, NamedSharding(mesh, dimensions)


def device_count(module: HloModule) -> int:
    """Return the number of devices that a program is partitioned for; 1 where it is not."""
    return min(max(int(module.root["hlo_module.device_assignment.computation_count"][0]), 1), MAX_DEVICES)


FRAME_INDEX = "hlo_module.stack_frame_index"


def read_stacks(module: HloModule) -> tuple[Stacks, I32]:
    """Return all frames of the module, and the innermost frame of each instruction, -1 where it has none."""
    frames, locations = module.tables[f"{FRAME_INDEX}.stack_frames"], module.tables[f"{FRAME_INDEX}.file_locations"]
    n = len(frames["file_location_id"])
    location = _row_of_id(frames["file_location_id"], len(locations["line"]))
    # Ids in the file count from 1; 0 is none.
    parent = _without_cycles(_row_of_id(frames["parent_frame_id"], n))

    ids = _row_of_id(module.instructions["metadata.stack_frame_id"], n)
    # Instructions without a stack may have a source line.
    without_stack = np.flatnonzero(ids < 0)
    columns = module.instructions.of_rows(without_stack)
    known = np.flatnonzero(columns["metadata.source_file"].length > 0)
    files, lines = columns["metadata.source_file"].take(known), columns["metadata.source_line"][known]
    line_index, first = group_rows([intern(module.data, *files)[0], lines])
    ids[without_stack[known]] = n + line_index

    file_names = module.tables[f"{FRAME_INDEX}.file_names"]["value"]
    all_files = Spans(*map(np.append, file_names, files.take(first))) if n else files.take(first)
    base = len(file_names.start) if n else 0
    # A frame without a location takes the number that is appended.
    file_id, function_id, line = (
        np.append(locations[name], 0)[location] for name in ("file_name_id", "function_name_id", "line")
    )
    function_names = module.tables[f"{FRAME_INDEX}.function_names"]["value"]
    function, file = _row_of_id(function_id, len(function_names.start)), _row_of_id(file_id, base)
    none, own_file = np.full(len(first), -1), base + np.arange(len(first))
    stacks = Stacks(
        parent=np.r_[parent, none].astype(np.int32),
        function=Text(np.r_[function, none].astype(np.int32), module.distinct_texts(function_names).strings),
        file=Text(np.r_[file, own_file].astype(np.int32), module.distinct_texts(all_files).strings),
        line=np.r_[line, lines[first]].astype(np.int32),
    )
    return stacks, ids.astype(np.int32)


def _row_of_id(ids: I64, count: int) -> I64:
    """Convert 1-based ids to 0-based rows; -1 for 0 and for ids beyond the table."""
    return np.where((ids >= 1) & (ids <= count), ids - 1, -1)


def _without_cycles(parent: I64) -> I64:
    """Return parents with -1 for each frame of a cycle, which only a damaged file has."""
    count = len(parent)
    above = np.r_[np.where(parent >= 0, parent, count), count]
    for _ in range(count.bit_length()):  # pointer doubling: each round looks twice as far up
        above = above[above]
    # As many steps up as there are frames lead from any frame to the end of its stack, or into its cycle.
    cyclic = np.zeros(count + 1, dtype=bool)
    cyclic[above] = True
    return np.where(cyclic[:count], -1, parent)
