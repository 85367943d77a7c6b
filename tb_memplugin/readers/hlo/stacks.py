"""Source frames of instructions: the module's stack-frame index, or the one line an older file gives."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.text.strings import intern
from tb_memplugin.readers.hlo.module import Module

INDEX = "hlo_module.stack_frame_index"


def stacks_of(module: Module) -> tuple[Stacks, I32]:
    """All frames of the module, and per instruction its innermost one, -1 where it has none."""
    frames, locations = module.tables[f"{INDEX}.stack_frames"], module.tables[f"{INDEX}.file_locations"]
    n = len(frames["file_location_id"])
    location = _entry(frames["file_location_id"], len(locations["line"]))
    # The file counts from 1; 0 is none.
    parent = _entry(frames["parent_frame_id"], n)

    ids = _entry(module.instructions["metadata.stack_frame_id"], n)
    files: Spans = module.instructions["metadata.source_file"]
    alone = np.flatnonzero((ids < 0) & (files.length > 0))
    single, line, first = _single_lines(module, files.take(alone), module.instructions["metadata.source_line"][alone])
    ids[alone] = n + single

    file_names = module.tables[f"{INDEX}.file_names"]["value"]
    all_files = _append(file_names, files.take(alone[first])) if n else files.take(alone[first])
    base = len(file_names.start) if n else 0
    file = np.r_[
        _at(_entry(_at(locations["file_name_id"], location, 0), base), np.arange(n)), base + np.arange(len(first))
    ]
    function_names = module.tables[f"{INDEX}.function_names"]["value"]
    function = _entry(_at(locations["function_name_id"], location, 0), len(function_names.start))
    stacks = Stacks(
        parent=np.r_[parent, np.full(len(first), -1)].astype(np.int32),
        function=Text(np.r_[function, np.full(len(first), -1)].astype(np.int32), _strings(module, function_names)),
        file=Text(file.astype(np.int32), _strings(module, all_files)),
        line=np.r_[_at(locations["line"], location, 0), line].astype(np.int32),
    )
    return stacks, ids.astype(np.int32)


def _single_lines(module: Module, files: Spans, lines: I64) -> tuple[I64, I64, I64]:
    """Distinct (file, line) pairs: which one each row has, the line of each pair, the first row with it."""
    codes, _ = intern(module.data, files.start, files.length)
    pairs = np.stack([codes.astype(np.int64), lines], axis=1)
    _, first, which = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    return which.ravel(), lines[first], first


def _entry(ids: I64, count: int) -> I64:
    """1-based ids as 0-based rows; -1 for none and for ids past the table."""
    return np.where((ids >= 1) & (ids <= count), ids - 1, -1)


def _at(table: I64, rows: I64, default: int = -1) -> I64:
    if not len(table):
        return np.full(len(rows), default, dtype=np.int64)
    return np.where(rows >= 0, table[rows], default)


def _append(a: Spans, b: Spans) -> Spans:
    return Spans(np.r_[a.start, b.start], np.r_[a.length, b.length])


def _strings(module: Module, spans: Spans) -> Strings:
    return module.names(spans).strings
