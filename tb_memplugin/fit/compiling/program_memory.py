"""The figures of a compiled candidate: reserved bytes, its peak by role and by part, recomputation by XLA, and time."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tb_memplugin.analysis.ownership.peak_parts import peak_parts
from tb_memplugin.analysis.program_times import kinds_of_work
from tb_memplugin.analysis.replay.compiler_recomputation import FREE, repeats
from tb_memplugin.analysis.step_time import Bound, step_time
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.analysis.usage.live_set import bytes_by_role
from tb_memplugin.errors import InputError
from tb_memplugin.logdir.names import AFTER_CODEGEN
from tb_memplugin.model.accelerators import ACCELERATORS
from tb_memplugin.model.fit import Outcome, PeakPart
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.kernels.memory import KERNEL, used_by_kernel
from tb_memplugin.sizes import bytes_text, counted, percent_text
from tb_memplugin.targets import parse_target

NOTABLE_WAIT = 0.1  # of the time; estimates of links are rough
BESIDE = "other arrays of the script"
CODE_BYTES, CODE_PER_INSTRUCTION = 2 << 20, 64 << 10


def with_memory(outcome: Outcome, program: Recording, content: bytes = b"", to_end: bool = False) -> Outcome:
    """Return the outcome with the figures of its compiled program. `content` is its HloProto."""
    target, facts = parse_target(outcome.candidate.target), program.program
    assert target is not None and facts is not None
    doubtful = target.platform == "tpu" and not to_end
    found = tuple(doubts(program, content, target.capacity or 0)) if doubtful else ()
    known = replace(
        with_peak(outcome, program),
        # The instructions that the compiler runs twice by itself; those in a loop count once.
        rematerialized=int(np.count_nonzero(repeats(facts.name) & ~facts.op.isin(FREE))),
        vmem_bytes=max(_vmem_of_kernels(program).values(), default=0),
        doubtful=bool(found),
        caveats=(*target.caveats, *found),
    )
    return with_time(known, program) if content else known


def with_peak(outcome: Outcome, recording: Recording) -> Outcome:
    """Return the outcome with the memory of a program or a trace: reserved, and its peak by role and by part."""
    top = peak(recording)
    return replace(
        outcome,
        reserved_bytes=reserved_bytes(recording),
        peak_bytes=top.bytes,
        roles={role.name.lower(): size for role, size in bytes_by_role(recording, top.position).items()},
        parts=peak_parts(recording),
    )


def with_beside(outcome: Outcome, beside: int, others: Mapping[str, int]) -> Outcome:
    """Return the outcome of a script's step, with the memory that the script takes otherwise.

    So many bytes of a device are in other arrays while the step runs; other functions need at least as many as given.
    """
    if beside:
        text = f"{bytes_text(beside)} of it are in other arrays that the script keeps while the step runs"
        outcome = _with_part(outcome, BESIDE, beside, text)
    name = max(others, key=others.__getitem__, default="")
    more = others.get(name, 0) - (outcome.reserved_bytes or 0)
    if more > 0:
        text = f"The most is needed by {name}, not by the step: {bytes_text(more)} more, and its temporary values"
        outcome = _with_part(outcome, f"{name} beside the step", more, f"{text}; --jit {name} compiles it")
    return outcome


def _with_part(outcome: Outcome, name: str, size: int, caveat: str) -> Outcome:
    return replace(
        outcome,
        reserved_bytes=(outcome.reserved_bytes or 0) + size,
        peak_bytes=(outcome.peak_bytes or 0) + size,
        roles={**outcome.roles, name: size},
        parts=tuple(sorted((*outcome.parts, PeakPart(name, size)), key=lambda part: -part.bytes)),
        caveats=(*outcome.caveats, caveat),
    )


def doubts(program: Recording, content: bytes, capacity: int) -> Iterator[str]:
    """Yield reasons why a TPU program that fits may still be refused at the end of its compilation."""
    code, left = code_bytes(program), capacity - reserved_bytes(program)
    if 0 <= left < code:
        yield (
            f"Only {bytes_text(left)} are left for the program's code, which takes up to about {bytes_text(code)}: "
            "the compiler may refuse it at the end of its compilation"
        )
    if count := content.count(KERNEL):
        needs = _vmem_of_kernels(program)
        name = max(needs, key=needs.__getitem__, default="")
        most = f", {bytes_text(needs[name])} or more in {name}," if needs.get(name) else ""
        which = f"On-chip memory of {counted(count, 'Pallas kernel')}{most}"
        yield f"{which} is compared with its limit at the end of a compilation only"


def with_used_vmem(outcome: Outcome, content: bytes) -> Outcome:
    """Return the outcome of a whole compilation, whose last stage says what each kernel takes, spills included."""
    try:
        used = used_by_kernel(content, ReadBudget(content, AFTER_CODEGEN))
    except InputError:
        return outcome
    return replace(outcome, vmem_bytes=max(used.values(), default=outcome.vmem_bytes))


def _vmem_of_kernels(program: Recording) -> dict[str, int]:
    """Return the bytes of each Pallas kernel's windows and scratch memory, by its name."""
    kernels = program.program.kernels if program.program is not None else ()
    return {kernel.name: sum(buffer.bytes for buffer in kernel.buffers) for kernel in kernels}


def code_bytes(recording: Recording) -> int:
    """Estimate the largest size of a TPU program's code, which takes HBM as well, but is not in the dump.

    Of 20 programs for five chips, the largest code took 64 KiB per instruction, beside 2 MiB.
    """
    assert recording.program is not None
    return CODE_BYTES + CODE_PER_INSTRUCTION * int(np.count_nonzero(~recording.program.op.isin(FREE)))


def with_time(outcome: Outcome, recording: Recording) -> Outcome:
    """Return the outcome with the estimated time of its program; without, where the target's speed is not known."""
    target, program = parse_target(outcome.candidate.target), recording.program
    chip = ACCELERATORS.get(target.chip) if target is not None else None
    if program is None or program.costs is None:
        return outcome
    try:
        costs = program.costs()
    except InputError:
        return outcome
    if outcome.rematerialized:
        flops = costs.flops * costs.times
        repeated = float(flops[repeats(program.name)].sum()) / max(float(flops.sum()), 1.0)
        outcome = replace(outcome, rematerialized_flops=repeated)
    if chip is None:
        return outcome
    time = step_time(costs, chip.speed)
    waits = ((Bound.LINKS, "for other devices"), (Bound.HOST, "for copies between device and host"))
    caveats = [
        f"About {percent_text(seconds, time.total)} of the estimated time of a step is waiting {reason}"
        for bound, reason in waits
        if (seconds := time.bound_by(bound)) > NOTABLE_WAIT * time.total
    ]
    return replace(
        outcome,
        step_seconds=time.total,
        utilization=time.utilization,
        bound_seconds=time.by_bound,
        work_seconds=kinds_of_work(program, time.seconds),
        caveats=(*outcome.caveats, *caveats),
    )
