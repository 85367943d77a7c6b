"""Compiled programs as text: XLA's buffer assignment, with the live ranges and the module that its dump has beside it.

The texts are translated into an HloProto, so that all of readers/hlo works for them. They follow one another in one
content, in any order, and are recognized by their first lines. Only the buffer assignment is needed.
"""

import re
from dataclasses import replace
from itertools import pairwise

from tb_memplugin.errors import InputError
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.part import FilePart

SUFFIX = "-buffer-assignment.txt"
HEADERS = re.compile(rb"^(?:BufferAssignment:|HloLiveRange \(max |HloModule )", re.MULTILINE)
# Measured on a TPU program of 360 instructions: 6 bytes of memory and 75 ns for each byte of text.
MEMORY, WORK = 8, 100
NO_RANGES = "The dump has no live ranges (*-live-range.txt), so "
RESERVED = "temporary memory counts as live throughout, and the peak is at most the shown one."
# Of 14 programs for TPU and GPU, the peak of HBM was up to 15.3 % too low.
FROM_USES = "lifetimes follow from uses, and the peak may be up to 15% higher than the shown one."
NO_MODULE = "The dump has no module as text (*after_optimizations.txt), so operations and source lines are unknown."


def open_hlo_text(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the one part of a program's text."""
    name = path.rsplit("/", 1)[-1].removesuffix(SUFFIX)
    return [FilePart(name, RecordingKind.PROGRAM, path, len(data), lambda: _read(data, path, name, run, host))]


def _read(data: bytes | memoryview, path: str, name: str, run: str, host: str) -> list[Recording]:
    from tb_memplugin.readers.hlo.recordings import read_hlo
    from tb_memplugin.readers.hlo_text.assignment import ProgramText

    budget = ReadBudget(data, path)
    budget.charge(MEMORY * len(data))
    budget.work(WORK * len(data))
    program = ProgramText()
    for text in _sections(bytes(data)):
        program.add(text)
    if not program.has_allocations:
        what, remedy = "the text has no buffer assignment", "keep *-buffer-assignment.txt of the dump"
        raise InputError(what, path, f"{remedy}, or dump with --xla_dump_hlo_as_proto")
    serialized, ranges = program.serialized()
    found = read_hlo(serialized, title=name, run=run, host=host, source=path, budget=budget, ranges=ranges)
    without = NO_RANGES + (FROM_USES if program.has_module else RESERVED)
    missing = [] if program.has_ranges else [Caveat(CaveatCode.NO_LIVE_RANGES, without)]
    missing += [] if program.has_module else [Caveat(CaveatCode.NO_MODULE_TEXT, NO_MODULE)]
    return [replace(recording, reported_peak=None, caveats=(*recording.caveats, *missing)) for recording in found]


def _sections(data: bytes) -> list[bytes]:
    """Split a content where another text begins."""
    begins = [found.start() for found in HEADERS.finditer(data)]
    return [data[begin:end] for begin, end in pairwise([*begins, len(data)])]
