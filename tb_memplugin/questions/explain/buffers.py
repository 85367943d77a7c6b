"""The largest live buffers or allocations of a recording, and everything that is known of one."""

from typing import NotRequired

import numpy as np

from tb_memplugin.analysis.ownership.source_lines import source_frames
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.asking.json_types import StackFrameJson
from tb_memplugin.questions.asking.selectors import position_of
from tb_memplugin.questions.explain.explain import MomentJson, moment
from tb_memplugin.questions.recording.columns import EXPORTED, ChosenRows, facts
from tb_memplugin.questions.recording.details import TEXTS, BufferJson, NamedRowJson, details
from tb_memplugin.questions.recording.summary import RecordingAnswerJson, about
from tb_memplugin.questions.records import record


class LiveBufferJson(NamedRowJson):
    """A live buffer or allocation; `row` selects it in `buffers --row`."""

    bytes: int
    """The bytes that it adds to the live bytes."""


class BuffersAnswerJson(RecordingAnswerJson):
    """The largest live buffers or allocations at one moment."""

    at: MomentJson
    """The position: the peak, or `--at`."""
    matching: NotRequired[str]
    """The value of `--match`, a text in name, model path, shape, role, function or source line."""
    buffers: list[LiveBufferJson]
    """The live buffers or allocations, largest first."""
    buffers_total: int
    """The number of buffers or allocations, listed or not."""
    buffers_bytes: int
    """The bytes of all of them."""


class BufferAnswerJson(RecordingAnswerJson, BufferJson):
    """One buffer or allocation in full. Positions are those of the recording's axis."""


def buffers(recording: Recording, asked: Asked, at: str | None = None, match: str | None = None) -> BuffersAnswerJson:
    """Return the largest live buffers, whose texts contain `match`, at the peak or at the moment `at`.

    InputError where `at` is not a moment of the recording.
    """
    position = peak(recording).position if at is None else position_of(recording, at)
    rows = live_rows(recording, position)
    if match:
        rows = rows[_matching(recording, rows, match)]
    shown = rows[: asked.top].tolist()
    why = "all that is known of the largest one"
    return asked.answer(
        BuffersAnswerJson,
        about(recording),
        {"matching": match} if match else {},
        at=moment(recording, position),
        buffers=[
            record(LiveBufferJson, facts(recording, row, ("row", *TEXTS)), bytes=int(recording.allocations.charge[row]))
            for row in shown
        ],
        buffers_total=len(rows),
        buffers_bytes=int(recording.allocations.charge[rows].sum()),
        omitted={"buffers": len(rows) - len(shown)},
        next=[asked.question("buffers", why, recording.id, row=row) for row in shown[:1]],
    )


def _matching(recording: Recording, rows: I64, match: str) -> I64:
    """Return the indices of the rows that contain a text, without regard to case, in any of their texts."""
    chosen, wanted = ChosenRows(recording, rows), match.casefold()
    columns = [*(EXPORTED[name].cells(chosen) for name in TEXTS), _functions(recording, rows)]
    found = [column.where(lambda text: wanted in text.casefold()) for column in columns if isinstance(column, Text)]
    return np.flatnonzero(np.logical_or.reduce(found))


def _functions(recording: Recording, rows: I64) -> Text:
    """Return the function of each row's source line; empty without one."""
    stacks, leaf = recording.stacks, recording.allocations.stack[rows]
    known = (leaf >= 0) & (leaf < len(stacks.parent))
    frames = np.full(len(rows), -1)
    frames[known] = source_frames(recording)[leaf[known]]
    codes = np.r_[stacks.function.codes, np.int32(-1)][frames]
    return Text(codes, stacks.function.strings)


def one_buffer(recording: Recording, row: int, asked: Asked) -> BufferAnswerJson:
    """Return everything that is known about a row. InputError for a row that the recording does not have."""
    if not 0 <= row < len(recording.allocations):
        last = len(recording.allocations) - 1
        raise InputError("No such row", str(row), f"give one from 0 to {last}; `buffers` and `explain` list them")
    found = details(recording, row)
    freed_leaf = int(recording.free_stack[row]) if recording.free_stack is not None else -1
    stack, inner = _from_own_line(recording, int(recording.allocations.stack[row]), found["stack"], asked.top)
    freed, inner_of_freed = _from_own_line(recording, freed_leaf, found["freed_stack"], asked.top)
    why = "the largest one that uses the same bytes"
    shares = found["shares_total"] - len(found["shares"])
    return asked.answer(
        BufferAnswerJson,
        about(recording),
        found,
        stack=stack,
        freed_stack=freed,
        omitted={"shares": shares, "stack": inner, "freed_stack": inner_of_freed},
        next=[asked.question("buffers", why, recording.id, row=one["row"]) for one in found["shares"][:1]],
    )


def _from_own_line(
    recording: Recording, leaf: int, frames: list[StackFrameJson], top: int | None
) -> tuple[list[StackFrameJson], int]:
    """Return a stack, which begins at the user's innermost line if it will be cut, and the number of frames before."""
    stacks = recording.stacks
    if top is None or len(frames) <= top or not 0 <= leaf < len(stacks.parent):
        return frames, 0
    own = int(source_frames(recording)[leaf])
    inner = len(frames) - len(stacks.frames(own)) if own >= 0 else 0
    return frames[inner:], inner
