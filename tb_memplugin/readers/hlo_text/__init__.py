"""Compiled programs as text: XLA's buffer assignment, its live ranges, the module, or the memory usage report.

The texts are translated into an HloProto, so that all of readers/hlo works for them. They follow one another in one
content, in any order, and are recognized by their first lines. The buffer assignment has all figures. Without it, the
memory of a scheduled module is computed as XLA would assign it, and a report alone shows its allocations.
"""

import re
from dataclasses import replace
from itertools import pairwise

from tb_memplugin.errors import InputError
from tb_memplugin.formats import HLO_TEXT
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.part import FilePart

HEADERS = re.compile(
    rb"^(?:BufferAssignment:|HloLiveRange \(max |HloModule |Total bytes used: |Memory Space: )", re.MULTILINE
)
# Measured on a TPU program of 360 instructions: 6 bytes of memory and 75 ns for each byte of text.
MEMORY, WORK = 8, 100
NO_RANGES = "The dump has no live ranges (*-live-range.txt), so "
RESERVED = "temporary memory counts as live throughout, and the peak is at most the shown one."
# Of 123 programs for TPU, GPU and CPU, 120 have the peak that XLA's traces have, within 0.1 %. The others have 0.956,
# 1.122 and 1.124 times as much.
FROM_USES = "lifetimes follow from uses: the peak is mostly exact, and may be 5% too low or 13% too high."
# Of the 123 programs in readers/hlo_text/assumed.py.
ASSUMED = (
    "The text is the module alone: which memory its buffers get is computed by XLA's rules. The peak may be lower than "
    "the shown one, in one of eight programs by more than 5%; reserved bytes were between 0.7 and 1.4 times XLA's."
)
REPORT_ONLY = (
    "The text is XLA's memory usage report alone: names, lifetimes and source lines are unknown, and sizes are rounded."
)
NO_MODULE = "The dump has no module as text (*after_optimizations.txt), so operations and source lines are unknown."


def open_hlo_text(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the one part of a program's text."""
    name = path.rsplit("/", 1)[-1]
    known = next((suffix for suffix in HLO_TEXT.suffixes if name.endswith(suffix)), "")
    name = name.removesuffix(known).removesuffix(".") or "program"
    return [FilePart(name, RecordingKind.PROGRAM, path, len(data), lambda: _read(data, path, name, run, host))]


def starts_program(data: bytes | memoryview) -> bool:
    """Return whether a content begins as a text of a compiled program."""
    return HEADERS.match(bytes(data[:100]).lstrip()) is not None


def _read(data: bytes | memoryview, path: str, name: str, run: str, host: str) -> list[Recording]:
    from tb_memplugin.readers.hlo.recordings import read_hlo
    from tb_memplugin.readers.hlo_text.assignment import ProgramText

    budget = ReadBudget(data, path)
    budget.charge(MEMORY * len(data))
    budget.work(WORK * len(data))
    program = ProgramText()
    for text in _sections(bytes(data)):
        program.add(text)
    if not (program.has_allocations or program.can_assume or program.has_report_only):
        what = "the text has no buffer assignment, and no module with a schedule"
        remedy = "keep *-buffer-assignment.txt of the dump, or the text of the compiled module"
        raise InputError(what, path, f"{remedy}, or dump with --xla_dump_hlo_as_proto")
    assumed, report_only = program.can_assume, program.has_report_only
    serialized, ranges = program.serialized(path, budget)
    # A text that was pasted or piped has no file name, but a module has a name of its own.
    title = name if "." in path or not program.has_module else program.proto.hlo_module.name.decode("utf-8", "replace")
    found = read_hlo(serialized, title=title, run=run, host=host, source=path, budget=budget, ranges=ranges)
    missing = [Caveat(CaveatCode.ASSIGNMENT_ASSUMED, ASSUMED)] if assumed else []
    if not program.has_ranges and not assumed:
        missing.append(Caveat(CaveatCode.NO_LIVE_RANGES, NO_RANGES + (FROM_USES if program.has_module else RESERVED)))
    if not program.has_module:
        missing.append(Caveat(CaveatCode.NO_MODULE_TEXT, REPORT_ONLY if report_only else NO_MODULE))
    # All lifetimes are computed, so that it is not said of some.
    ours = {CaveatCode.LIFETIMES_REBUILT} if assumed else set()
    kept = [[caveat for caveat in recording.caveats if caveat.code not in ours] for recording in found]
    return [
        replace(recording, reported_peak=None, caveats=(*caveats, *missing))
        for recording, caveats in zip(found, kept, strict=True)
    ]


def _sections(data: bytes) -> list[bytes]:
    """Split a content where another text begins."""
    begins = [found.start() for found in HEADERS.finditer(data)]
    return [data[begin:end] for begin, end in pairwise([*begins, len(data)])]
