"""Additions to a program's recordings from the files beside it in an XLA dump."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from tb_memplugin import logdir
from tb_memplugin.errors import InputError
from tb_memplugin.logdir import ProgramFile
from tb_memplugin.logdir.names import AFTER_CODEGEN
from tb_memplugin.model.accelerators import with_chip
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.budget import ReadBudget, decompress
from tb_memplugin.readers.hlo.kernels.memory import used_by_kernel
from tb_memplugin.readers.xla_dump import differences, read_target, reported_totals, scheduled_instructions

MAX_REPORT_BYTES = 64 << 20
MAX_TARGET_BYTES = 1 << 20
LIVE_RANGE_BYTES = 200  # the figure is in the first line


def with_dump_files(recordings: Sequence[Recording], program: ProgramFile, top: str) -> list[Recording]:
    """Return a program's recordings with the limits of its chip, and caveats where XLA's reports differ.

    `top`: as in HostFile.
    """
    stages = [path for path in program.beside if AFTER_CODEGEN in os.path.basename(path)]
    contents = {path: _content(top, path) for path in program.beside if path not in stages}
    files = [(os.path.basename(path).removesuffix(".gz"), content) for path, content in contents.items() if content]
    totals, length = reported_totals(files), scheduled_instructions(files)
    checked = [replace(r, caveats=(*r.caveats, *differences(r, totals, length))) for r in recordings]
    if stages:
        checked = [_with_used_memory(recording, top, stages[0]) for recording in checked]
    target = read_target(files)
    return with_chip(checked, *target) if target is not None else checked


def _with_used_memory(recording: Recording, top: str, path: str) -> Recording:
    """Return a recording with the memory that its kernels take, which is known after code generation."""
    program = recording.program
    content = logdir.read_beside(top, path, MAX_REPORT_BYTES) if program is not None and program.kernels else None
    if program is None or content is None:
        return recording
    try:
        budget = ReadBudget(content, path)
        used = used_by_kernel(decompress(content, budget), budget)
    except InputError:
        return recording
    kernels = tuple(replace(kernel, used_bytes=used.get(kernel.name, kernel.used_bytes)) for kernel in program.kernels)
    return replace(recording, program=replace(program, kernels=kernels))


def _content(top: str, path: str) -> bytes | None:
    if path.endswith("-live-range.txt"):
        return logdir.read_beside(top, path, LIVE_RANGE_BYTES)
    limit = MAX_REPORT_BYTES if "-memory-usage-report" in os.path.basename(path) else MAX_TARGET_BYTES
    content = logdir.read_beside(top, path, limit)
    try:
        return bytes(decompress(content, ReadBudget(content, path))) if content else None
    except InputError:
        return None
