"""The memory of a compiled candidate: what it reserves, its peak by role and by part, and what the compiler repeats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_memplugin.analysis.ownership.peak_parts import peak_parts
from tb_memplugin.analysis.replay.compiler_recomputation import REPEATED
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.analysis.usage.live_set import bytes_by_role
from tb_memplugin.errors import InputError
from tb_memplugin.fit.targets import parse_target
from tb_memplugin.model.fit import Outcome
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.hlo.module.flops import product_flops

FREE = {"bitcast", "constant", "get-tuple-element", "parameter", "tuple"}  # they compute nothing


def with_memory(outcome: Outcome, program: Recording, content: bytes = b"") -> Outcome:
    """Return the outcome with the figures of its compiled program. `content` is its HloProto."""
    top, target = peak(program), parse_target(outcome.candidate.target)
    repeated = repeated_instructions(program)
    return replace(
        outcome,
        reserved_bytes=reserved_bytes(program),
        peak_bytes=top.bytes,
        rematerialized=repeated,
        rematerialized_flops=repeated_flops(content) if repeated and content else 0.0,
        roles={role.name.lower(): size for role, size in bytes_by_role(program, top.position).items()},
        caveats=target.caveats if target is not None else (),
        parts=peak_parts(program),
    )


def repeated_instructions(recording: Recording) -> int:
    """Count the instructions that the compiler runs twice by itself. Those in a loop count once."""
    program = recording.program
    if program is None:
        return 0
    return int(np.count_nonzero(program.name.where(REPEATED.search) & ~program.op.isin(FREE)))


def repeated_flops(content: bytes) -> float:
    """Return the share of these instructions in the floating-point operations of products, as a price in time."""
    try:
        found = product_flops(content, "")
    except InputError:
        return 0.0
    every = float(found.flops.sum())
    return float(found.flops[found.name.where(REPEATED.search)].sum()) / every if every else 0.0
