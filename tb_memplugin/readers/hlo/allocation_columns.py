"""Allocation columns of a program, from its placement and the instructions that define its buffers."""

from functools import partial

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8, take_or_missing
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.tables import Allocations
from tb_memplugin.model.text import LazyText, Strings, Text, TextSource
from tb_memplugin.native.hlo.shape_types import MAX_DEPTH
from tb_memplugin.native.row_groups import group_rows
from tb_memplugin.native.text.strings import join
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.module import shapes
from tb_memplugin.readers.hlo.module.columns import ListColumns, Lists, ModuleTexts
from tb_memplugin.readers.hlo.module.tables import BUFFERS, HloModule
from tb_memplugin.readers.hlo.placement import Placement


def allocation_columns(module: HloModule, placement: Placement, leaf_frame: I32) -> Allocations:
    """Build the rows of all memory spaces; regions and canonical rows are numbered over the whole module."""
    buffer = placement.buffer
    instruction, node = (take_or_missing(column, buffer) for column in (module.buffer_instruction, module.buffer_node))
    shape, dtype, unpadded = _shape_columns(module, node)
    size = placement.size
    path = module.tables[f"{BUFFERS}.defined_at.shape_index"]
    names = partial(_names_of_rows, module.texts, path, len(module.buffers["id"]), buffer, instruction)
    return Allocations(
        id=np.append(module.buffers["id"], -1)[buffer],
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
        stack=take_or_missing(leaf_frame, instruction),
        name=LazyText(TextSource(names), np.arange(len(buffer))),
        shape=shape,
        dtype=dtype,
        op=Text(take_or_missing(module.opcode.codes, instruction), module.opcode.strings),
        op_name=LazyText(module.texts.op_name, instruction),
    )


def _roles(placement: Placement) -> U8:
    """Return the role of each region; if it has several kinds, the first one in `rules` decides."""
    kind = placement.region_kind
    rules = [
        (RegionKind.PARAMETER, Role.PARAMETER),
        (RegionKind.OUTPUT, Role.OUTPUT),
        (RegionKind.THREAD_LOCAL, Role.THREAD_LOCAL),
        (RegionKind.CONSTANT, Role.CONSTANT),
    ]
    found = np.select([(kind & k) != 0 for k, _ in rules], [int(role) for _, role in rules], int(Role.TEMPORARY))
    return found.astype(np.uint8)


def _names_of_rows(
    texts: ModuleTexts, path: ListColumns, count: int, buffer: I32, instruction: I32, rows: I64 | None
) -> Text:
    """Return the buffers' names: the defining instruction, and the shape index within its result, `fusion.3{1}`.

    `path`: the shape indices of the `count` buffers of the file.
    """
    if rows is not None:
        buffer, instruction = buffer[rows], instruction[rows]
    names = texts.names(np.maximum(instruction, 0))
    indices = _index_texts(Lists.of(path, count), buffer, texts.budget)
    name_codes = np.where(instruction >= 0, names.codes, -1).astype(np.int32)
    texts.budget.charge(int(np.diff(names.strings.offsets).sum()))
    names_with_indices = Strings(
        *join(
            names.strings.blob, names.strings.offsets, name_codes,
            indices.strings.blob, indices.strings.offsets, indices.codes,
        )
    )  # fmt: skip
    return Text(np.arange(len(buffer), dtype=np.int32), names_with_indices)


def _index_texts(path: Lists, buffer: I32, budget: ReadBudget) -> Text:
    """Return the shape index of each buffer, `{1,0}`, empty for a whole result. Few indices are distinct."""
    count = np.append(path.count(), 0)[buffer]  # the last: no buffer
    depth = min(int(count.max(initial=0)), MAX_DEPTH)
    budget.check(32 * depth * len(buffer))
    if not depth:
        return Text(np.full(len(buffer), -1, dtype=np.int32), Strings.of([]))
    columns = np.stack([np.where(count > d, path.nth(buffer, d), -1) for d in range(depth)])
    code, first = group_rows(columns)
    distinct = columns[:, first].T.tolist()
    texts = ["{" + ",".join(str(i) for i in row if i >= 0) + "}" if row[0] >= 0 else "" for row in distinct]
    return Text(code.astype(np.int32), Strings.of(texts))


def _shape_columns(module: HloModule, node: I32) -> tuple[Text, Text, I64]:
    """Return shape text, dtype and unpadded bytes per row, each formatted once per distinct shape. Node -1: unknown."""
    table, _ = module.instruction_shapes
    codes = np.where(node >= 0, table.kind[node], -1).astype(np.int32)
    dtypes = Strings.of([shapes.dtype_name(shape) for shape in table.distinct])
    # The last entry is for code -1.
    unpadded = np.array([*map(shapes.unpadded_bytes, table.distinct), 0], dtype=np.int64)

    def texts(rows: I64 | None) -> Text:
        distinct = table.distinct if rows is None else [table.distinct[row] for row in rows.tolist()]
        return Text(np.arange(len(distinct), dtype=np.int32), Strings.of([*map(shapes.shape_text, distinct)]))

    return LazyText(TextSource(texts), codes), Text(codes, dtypes), unpadded[codes]


def select_rows(table: Allocations, rows: I64, regions: I64, n_regions: int) -> Allocations:
    """Return the rows of one memory space, with regions and canonical rows renumbered within it."""
    if len(rows) == len(table) and len(regions) == n_regions:  # the only memory space
        return table
    region_number = np.full(n_regions, -1, dtype=np.int32)
    region_number[regions] = np.arange(len(regions))
    row_number = np.full(len(table), -1, dtype=np.int32)
    row_number[rows] = np.arange(len(rows))
    columns = {name: getattr(table, name) for name in Allocations.__slots__}
    columns = {name: c.sharing(rows) if isinstance(c, Text) else c[rows] for name, c in columns.items()}
    columns["region"] = region_number[columns["region"]]
    columns["canonical"] = row_number[columns["canonical"]]
    return Allocations(**columns)
