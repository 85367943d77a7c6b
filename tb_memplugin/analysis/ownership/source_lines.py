"""The source line of each allocation, and the user's line with the most memory at the peak."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.frames import framework_frames, nearest_frames
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.native.numbering import number_values

LINE = re.compile(r".+\.py:\d+", re.DOTALL)


class HeaviestLine(NamedTuple):
    line: str  # `train.py:86`, or with folders
    bytes: int  # of live allocations


@memoize
def source_frames(recording: Recording) -> I32:
    """Return per frame the innermost user frame, else the innermost Python frame, among itself and its callers."""
    own = _user_frames(recording)
    return np.where(own >= 0, own, nearest_frames(recording.stacks, recording.stacks.file.nonempty))


@memoize
def _user_frames(recording: Recording) -> I32:
    return nearest_frames(recording.stacks, ~framework_frames(recording.stacks))


@memoize
def source_lines(recording: Recording) -> Text:
    """Return each row's source line, `folder/train.py:12`, by `source_frames`; empty without one."""
    stacks, files = recording.stacks, recording.stacks.file
    frames, code = np.unique(_of_rows(source_frames(recording), recording.allocations.stack), return_inverse=True)
    texts = [f"{files[frame]}:{stacks.line[frame]}" if frame >= 0 and files[frame] else "" for frame in frames.tolist()]
    return Text.of(texts).take(code)  # equal texts get one code, since the page groups rows by code


@memoize
def heaviest_line(recording: Recording) -> HeaviestLine | None:
    """Return the line with the most bytes at the peak, without its folders; None if no line is known."""
    found, _ = heavy_lines(recording, peak(recording).position, 1)
    return HeaviestLine(base_name(found[0].line), found[0].bytes) if found else None


def heavy_lines(recording: Recording, position: int, most: int | None) -> tuple[list[HeaviestLine], int]:
    """Return the `most` lines with the most live bytes, by the user's innermost frames, and the number of all lines.

    Rows that are named after a line, as `track()` names arrays, count for it.
    """
    live = live_rows(recording, position)
    charge, files = recording.allocations.charge[live], recording.stacks.file
    frame = _of_rows(_user_frames(recording), recording.allocations.stack[live])
    known = np.r_[files.nonempty, False][frame]
    named = ~known & named_for_line(recording)[live]
    of_frames, frames = _of_frames(recording.stacks, frame[known], charge[known], most)
    of_names, names = _of_names(recording.allocations.name.take(live[named]), charge[named], most)
    return sorted([*of_frames, *of_names], key=lambda line: -line.bytes)[:most], frames + names


def _of_frames(stacks: Stacks, frame: I32, charge: I64, most: int | None) -> tuple[list[HeaviestLine], int]:
    if not len(frame):
        return [], 0
    # A line has one frame for each of its callers. Numbering lines takes a tenth of the time of sorting them.
    places, which = number_values((stacks.file.codes.astype(np.int64) << 32)[frame] + stacks.line[frame])
    held = np.bincount(which, charge).astype(np.int64)
    found = []
    for place, size in _heaviest(places, held, most):
        file, line = divmod(place + 2**31, 2**32)  # a damaged file may have lines below 0
        found.append(HeaviestLine(f"{stacks.file.strings[file]}:{line - 2**31}", size))
    return found, len(places)


def _of_names(names: Text, charge: I64, most: int | None) -> tuple[list[HeaviestLine], int]:
    if not len(names):
        return [], 0
    held = np.bincount(names.codes, charge).astype(np.int64)
    found = _heaviest(np.arange(len(held)), held, most)
    return [HeaviestLine(names.strings[code], size) for code, size in found], int(np.count_nonzero(held))


def _heaviest(keys: I64, held: I64, most: int | None) -> list[tuple[int, int]]:
    """Return the keys with the most bytes, and these; keys without any are left out."""
    order = np.argsort(-held, kind="stable")[:most]
    return [(key, size) for key, size in zip(keys[order].tolist(), held[order].tolist(), strict=True) if size]


def _of_rows(of_frame: I32, stack: I32) -> I32:
    """Return the value of each row's frame, -1 without one."""
    known = (stack >= 0) & (stack < len(of_frame))
    found: I32 = np.r_[of_frame, np.int32(-1)][np.where(known, stack, -1)]
    return found


def named_for_line(recording: Recording) -> Mask:
    """Mark a runtime's rows that are named after a Python line, as `track()` names arrays."""
    names = recording.allocations.name
    if recording.axis is not Axis.TIME:
        return np.zeros(len(names), dtype=bool)
    return names.where(LINE.fullmatch)


def base_name(line: str) -> str:
    """Return a line without its folders."""
    return line.replace("\\", "/").rpartition("/")[2]
