"""The memory of a compiled candidate: what it reserves, its peak by role and by part, and what the compiler repeats."""

from __future__ import annotations

from dataclasses import replace

from tb_memplugin.analysis.ownership.layers import heaviest_layer
from tb_memplugin.analysis.replay.compiler_recomputation import compiler_recomputation
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.analysis.usage.live_set import bytes_by_role
from tb_memplugin.fit.targets import parse_target
from tb_memplugin.model.fit import Outcome, PeakPart
from tb_memplugin.model.recording import Recording


def with_memory(outcome: Outcome, program: Recording) -> Outcome:
    """Return the outcome with the figures of its compiled program."""
    top = peak(program)
    layer, target = heaviest_layer(program), parse_target(outcome.candidate.target)
    return replace(
        outcome,
        reserved_bytes=reserved_bytes(program),
        peak_bytes=top.bytes,
        rematerialized=compiler_recomputation(program).operations,
        roles={role.name.lower(): size for role, size in bytes_by_role(program, top.position).items()},
        caveats=target.caveats if target is not None else (),
        parts=(PeakPart(layer.name, layer.bytes),) if layer is not None else (),
    )
