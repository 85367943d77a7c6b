"""Call stacks of instructions, from the stack-frame index or, in older files, one source line per instruction."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.text.strings import intern
from tb_memplugin.readers.hlo.module.tables import HloModule

FRAME_INDEX = "hlo_module.stack_frame_index"


def read_stacks(module: HloModule) -> tuple[Stacks, I32]:
    """Return all frames of the module, and the innermost frame of each instruction, -1 where it has none."""
    frames, locations = module.tables[f"{FRAME_INDEX}.stack_frames"], module.tables[f"{FRAME_INDEX}.file_locations"]
    n = len(frames["file_location_id"])
    location = _row_of_id(frames["file_location_id"], len(locations["line"]))
    # Ids in the file count from 1; 0 is none.
    parent = _without_cycles(_row_of_id(frames["parent_frame_id"], n))

    ids = _row_of_id(module.instructions["metadata.stack_frame_id"], n)
    without_stack, files, lines = _lines_without_stack(module, np.flatnonzero(ids < 0))
    line_index, line, first = _single_lines(module, files, lines)
    ids[without_stack] = n + line_index

    file_names = module.tables[f"{FRAME_INDEX}.file_names"]["value"]
    all_files = _append(file_names, files.take(first)) if n else files.take(first)
    base = len(file_names.start) if n else 0
    file = np.r_[
        _take(_row_of_id(_take(locations["file_name_id"], location, 0), base), np.arange(n)),
        base + np.arange(len(first)),
    ]
    function_names = module.tables[f"{FRAME_INDEX}.function_names"]["value"]
    function = _row_of_id(_take(locations["function_name_id"], location, 0), len(function_names.start))
    stacks = Stacks(
        parent=np.r_[parent, np.full(len(first), -1)].astype(np.int32),
        function=Text(np.r_[function, np.full(len(first), -1)].astype(np.int32), _strings(module, function_names)),
        file=Text(file.astype(np.int32), _strings(module, all_files)),
        line=np.r_[_take(locations["line"], location, 0), line].astype(np.int32),
    )
    return stacks, ids.astype(np.int32)


def _lines_without_stack(module: HloModule, rows: I64) -> tuple[I64, Spans, I64]:
    """Return which of these instructions have a source line, with its file and number."""
    columns = module.instructions.of_rows(rows)
    files: Spans = columns["metadata.source_file"]
    found = np.flatnonzero(files.length > 0)
    return rows[found], files.take(found), columns["metadata.source_line"][found]


def _single_lines(module: HloModule, files: Spans, lines: I64) -> tuple[I64, I64, I64]:
    """Group rows by (file, line); return each row's group, and per group its line and its first row."""
    codes, _ = intern(module.data, files.start, files.length)
    pairs = np.stack([codes.astype(np.int64), lines], axis=1)
    _, first, which = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    return which.ravel(), lines[first], first


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


def _take(table: I64, rows: I64, default: int = -1) -> I64:
    if not len(table):
        return np.full(len(rows), default, dtype=np.int64)
    return np.where(rows >= 0, table[rows], default)


def _append(a: Spans, b: Spans) -> Spans:
    return Spans(np.r_[a.start, b.start], np.r_[a.length, b.length])


def _strings(module: HloModule, spans: Spans) -> Strings:
    return module.distinct_texts(spans).strings
