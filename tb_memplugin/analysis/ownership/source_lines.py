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
    line: str  # `train.py:86`, without folders
    bytes: int  # of the allocations that are live at the peak


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
    """Return the line with the most bytes at the peak, by the user's innermost frames; None if no line is known.

    Rows that are named after a line, as `track()` names arrays, count for it.
    """
    live = live_rows(recording, peak(recording).position)
    charge, files = recording.allocations.charge[live], recording.stacks.file
    frame = _of_rows(_user_frames(recording), recording.allocations.stack[live])
    known = np.r_[files.nonempty, False][frame]
    named = ~known & named_for_line(recording)[live]
    lines = [
        _heaviest_of_frames(recording.stacks, frame[known], charge[known]),
        _heaviest_of_names(recording.allocations.name.take(live[named]), charge[named]),
    ]
    return max((line for line in lines if line is not None), key=lambda line: line.bytes, default=None)


def _heaviest_of_frames(stacks: Stacks, frame: I32, charge: I64) -> HeaviestLine | None:
    if not len(frame):
        return None
    # A line has one frame for each of its callers. Numbering lines takes a tenth of the time of sorting them.
    places, which = number_values((stacks.file.codes.astype(np.int64) << 32)[frame] + stacks.line[frame])
    held = np.bincount(which, charge)
    most = int(np.argmax(held))
    file, line = divmod(int(places[most]) + 2**31, 2**32)  # a damaged file may have lines below 0
    return HeaviestLine(f"{base_name(stacks.file.strings[file])}:{line - 2**31}", int(held[most]))


def _heaviest_of_names(names: Text, charge: I64) -> HeaviestLine | None:
    if not len(names):
        return None
    held = np.bincount(names.codes, charge)
    most = int(np.argmax(held))
    return HeaviestLine(base_name(names.strings[most]), int(held[most]))


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
