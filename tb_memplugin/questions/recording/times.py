"""The time of a program beside its memory: of each instruction, of the peak, and of buffers that nothing uses."""

from collections.abc import Iterator
from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.program_times import HeldMemory, ProgramTimes, held_memory, kinds_of_work, program_times
from tb_memplugin.analysis.step_time import Bound
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import F64, I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING
from tb_memplugin.questions.asking.payload import encode
from tb_memplugin.questions.asking.text_table import align
from tb_memplugin.questions.recording.columns import facts
from tb_memplugin.questions.recording.details import TEXTS, NamedRowJson
from tb_memplugin.questions.recording.summary import RecordingAnswerJson, about
from tb_memplugin.questions.records import record
from tb_memplugin.sizes import bytes_text, counted, percent_text, seconds_text, two_digits

NOTABLE_SHARE = 0.02  # of the time: an instruction that is worth a sentence
NOTABLE_FACTOR = 2.0  # between measured and estimated times, or between devices
NOTABLE_BYTES = 0.01  # of the peak
MAX_LISTED = 3
MEASURED_DIGITS = 3
BOUNDS = Strings.of([bound.label for bound in Bound])


class RoleTimeJson(TypedDict):
    """The memory that buffers of a role hold during one run."""

    role: str
    """The role."""
    byte_seconds: float
    """Their bytes, each times the time for which it is held."""


class TimesJson(TypedDict):
    """The time of one run of a program. Estimated times are a roofline's; null where they are unknown."""

    estimated_seconds: float | None
    """The estimate; null where the speed of the device is not known."""
    measured_seconds: float | None
    """The time of its instructions in the profile, on the mean device; null where there is none."""
    runs: int
    """The runs in the profile, on all devices together."""
    devices: int
    """The devices that ran it."""
    near_peak_seconds: float | None
    """The time in which at least 99 % of the peak is in use, by the measured times, else by the estimated ones."""
    bounds: dict[str, float]
    """The estimated seconds that each resource binds: `memory`, `matrix products`, `other devices`, `host`."""
    work: dict[str, float]
    """The seconds of `recomputation`, `collectives` and `copies`, the most first; what was measured, else estimated."""
    held: list[RoleTimeJson]
    """The memory that each role holds over time, most first."""
    sentences: list[str]
    """Sentences on what stands out."""


class TimedInstructionJson(TypedDict):
    """The times of an instruction in one run of its program, all iterations of loops included."""

    position: int
    """The position in the schedule."""
    name: str
    """The instruction."""
    op_name: str
    """Its model path."""
    estimated_seconds: float | None
    """The estimate."""
    measured_seconds: float | None
    """The measured time."""
    bound: str
    """The resource that binds it, by the estimate; empty where there is none."""
    imbalance: float | None
    """The mean time on the slowest device, divided by that on the fastest; null with one device."""


class HeldBufferJson(NamedRowJson):
    """A buffer with the time for which it is held."""

    bytes: int
    """Its bytes."""
    byte_seconds: float
    """Its bytes times the time for which it is held."""
    unused_seconds: float
    """The longest time for which it is held while nothing reads or writes it."""


class TimesAnswerJson(RecordingAnswerJson, TimesJson):
    """The time of one run of a program, of its instructions, and of the buffers that it holds."""

    instructions: list[TimedInstructionJson]
    """The instructions that take time, the longest first."""
    buffers: list[HeldBufferJson]
    """The buffers that are held unused, the most byte-seconds first."""


OF_PROGRAMS = InReport(lambda recording: recording.kind.has_program)


@endpoint("times", RECORDING, report=OF_PROGRAMS)
def times(recording: Recording) -> TimesJson:
    """Return the times of a program. InputError where its profile is damaged."""
    found, held = program_times(recording), held_memory(recording)
    estimate, program = found.estimated if found is not None else None, recording.program
    return {
        "estimated_seconds": estimate.total if estimate is not None else None,
        "measured_seconds": found.total_measured if found is not None else None,
        "runs": found.executions if found is not None else 0,
        "devices": len(found.devices) if found is not None else 0,
        "near_peak_seconds": held.near_peak if held is not None else None,
        "bounds": estimate.by_bound if estimate is not None else {},
        "work": kinds_of_work(program, found.seconds) if found is not None and program is not None else {},
        "held": [
            {"role": role.name.lower(), "byte_seconds": total} for role, total in (held.by_role if held else {}).items()
        ],
        "sentences": list(_sentences(recording, found, held)) if found is not None and held is not None else [],
    }


@endpoint("time_tables", RECORDING, report=OF_PROGRAMS)
def time_tables(recording: Recording) -> bytes:
    """Return the times of a program's `positions`, and what its `rows` hold; empty tables where they are unknown."""
    found, held = program_times(recording), held_memory(recording)
    if found is None or held is None:
        return encode({}, {"positions": {}, "rows": {}})
    nothing = np.full(recording.length, np.nan)
    positions = {
        "seconds": found.seconds,
        "estimated": found.estimated.seconds if found.estimated is not None else nothing,
        "measured": found.measured if found.measured is not None else nothing,
        "imbalance": found.imbalance if found.imbalance is not None else nothing,
        "bound": _bounds(found),
    }
    return encode({}, {"positions": positions, "rows": {"byte_seconds": held.byte_seconds, "unused": held.unused}})


def _bounds(found: ProgramTimes) -> Text:
    """Return what binds the instruction at each position, empty where it takes no time, or nothing is known."""
    if found.estimated is None:
        return Text(np.full(len(found.seconds), -1, dtype=np.int32), BOUNDS)
    return Text(np.where(found.estimated.seconds > 0, found.estimated.bound.astype(np.int32), -1), BOUNDS)


def times_answer(recording: Recording, asked: Asked) -> TimesAnswerJson:
    """Return the times of a program, with the longest instructions. InputError where nothing is known of them."""
    found, held = program_times(recording), held_memory(recording)
    if found is None or held is None:
        what = (
            "The time of its instructions is not known" if recording.program is not None else "Not a compiled program"
        )
        remedy = "give a profile of a device, or a dump of a program that is compiled for a TPU or GPU"
        raise InputError(what, recording.id, remedy)
    positions, rows = _largest(found.seconds), _largest(recording.allocations.charge * held.unused)
    shown, listed = positions[: asked.top], rows[: asked.top]
    return asked.answer(
        TimesAnswerJson,
        about(recording),
        times(recording),
        instructions=_instructions(recording, found, shown),
        buffers=[
            record(
                HeldBufferJson,
                facts(recording, row, ("row", *TEXTS)),
                bytes=int(recording.allocations.charge[row]),
                byte_seconds=float(held.byte_seconds[row]),
                unused_seconds=float(held.unused[row]),
            )
            for row in listed.tolist()
        ],
        omitted={"instructions": len(positions) - len(shown), "buffers": len(rows) - len(listed)},
        next=[
            asked.question("buffers", "all that is known of the first buffer", recording.id, row=row)
            for row in listed[:1].tolist()
        ],
    )


def _instructions(recording: Recording, found: ProgramTimes, positions: I64) -> list[TimedInstructionJson]:
    program = recording.program
    assert program is not None
    estimated = found.estimated.seconds if found.estimated is not None else None
    texts = (column.take(positions).tolist() for column in (program.name, program.op_name, _bounds(found)))
    return [
        {
            "position": position,
            "name": name,
            "op_name": op_name,
            "estimated_seconds": _known(estimated, position),
            "measured_seconds": _known(found.measured, position),
            "bound": bound,
            "imbalance": _known(found.imbalance, position),
        }
        for position, name, op_name, bound in zip(positions.tolist(), *texts, strict=True)
    ]


def _known(column: F64 | None, at: int) -> float | None:
    return float(column[at]) if column is not None and np.isfinite(column[at]) else None


def _largest(values: F64) -> I64:
    """Return the places of the values above zero, the largest first."""
    order = np.argsort(-values, kind="stable")
    return order[values[order] > 0]


def _sentences(recording: Recording, found: ProgramTimes, held: HeldMemory) -> Iterator[str]:
    total, as_estimated = float(found.seconds.sum()), "" if found.is_measured else ", as estimated"
    yield f"One run of the program takes {_run_text(found)}."
    if found.others:
        share = percent_text(found.others, total)
        yield f"{share} of it is in kernels without the name of an instruction, such as those of libraries."
    program = recording.program
    assert program is not None
    work = {name: part for name, part in kinds_of_work(program, found.seconds).items() if part >= NOTABLE_SHARE * total}
    if work:
        parts = ", ".join(f"{name} {percent_text(part, total)}" for name, part in work.items())
        yield f"Of the time, {parts}{as_estimated}."
    share = percent_text(held.near_peak, total)
    yield f"At least 99% of the peak is in use for {_text(held.near_peak, found)} of it ({share}{as_estimated})."
    everything = sum(held.by_role.values())
    if largest := list(held.by_role.items())[:MAX_LISTED]:
        parts = ", ".join(f"{role.label} {percent_text(part, everything)}" for role, part in largest)
        yield f"Of the bytes that are held over time, most are {parts}{as_estimated}."
    charge = recording.allocations.charge
    unused_most = _largest(charge * held.unused)[:MAX_LISTED]
    large = [row for row in unused_most.tolist() if charge[row] >= NOTABLE_BYTES * peak(recording).bytes]
    for row in large[:1]:
        name = recording.allocations.name[row] or "A buffer"
        unused = f"{_text(held.unused[row], found)} while nothing uses it"
        yield f"{name} ({bytes_text(int(charge[row]))}) is held for {unused}{as_estimated}."
    yield from _differences(recording, found, total)


def _run_text(found: ProgramTimes) -> str:
    estimated = seconds_text(found.estimated.total) if found.estimated is not None else ""
    if found.measured is None:
        return f"about {estimated}, as estimated"
    measured = seconds_text(found.total_measured or 0.0, MEASURED_DIGITS)
    devices = len(found.devices)
    runs = counted(round(found.executions / devices), "run")
    where = f" on each of {devices:,} devices" if devices > 1 else ""
    beside = f"; {estimated} are estimated" if estimated else ""
    return f"{measured}, the sum of its instructions as measured ({runs}{where}){beside}"


def _text(seconds: float, found: ProgramTimes) -> str:
    return seconds_text(seconds, MEASURED_DIGITS if found.is_measured else 2) or "0 s"


def _differences(recording: Recording, found: ProgramTimes, total: float) -> Iterator[str]:
    """Yield sentences on instructions that take longer or shorter than estimated, or longer on one device."""
    program = recording.program
    assert program is not None
    if found.measured is None:
        return
    measured = np.nan_to_num(found.measured)
    if found.estimated is not None:
        estimated = found.estimated.seconds
        is_wait = program.op.where(lambda opcode: opcode.endswith("-done"))  # one may wait for what another is late for
        apart = (np.abs(measured - estimated) >= NOTABLE_SHARE * total) & ~is_wait
        low, high = np.minimum(measured, estimated), np.maximum(measured, estimated)
        differs = np.flatnonzero(apart & (low > 0) & (high >= NOTABLE_FACTOR * low))
        for at in differs[np.argsort(-np.abs(measured - estimated)[differs], kind="stable")][:MAX_LISTED].tolist():
            ratio = two_digits(high[at] / low[at])
            how = "slower" if measured[at] > estimated[at] else "faster"
            figures = f"{seconds_text(measured[at], MEASURED_DIGITS)}, estimated {seconds_text(estimated[at])}"
            yield f"{program.name[at]} is {ratio} times {how} than estimated: {figures}."
    if found.imbalance is not None:
        slow = np.flatnonzero((np.nan_to_num(found.imbalance) >= NOTABLE_FACTOR) & (measured >= NOTABLE_SHARE * total))
        for at in slow[np.argsort(-measured[slow], kind="stable")][:MAX_LISTED].tolist():
            yield (
                f"{program.name[at]} takes {two_digits(float(found.imbalance[at]))} times as long on the slowest of "
                f"{len(found.devices)} devices as on the fastest."
            )


def lines(answer: TimesAnswerJson) -> Iterator[str]:
    """Yield the answer as text."""
    yield from answer["sentences"]
    if bounds := answer["bounds"]:
        total = sum(bounds.values())
        parts = sorted(bounds.items(), key=lambda part: -part[1])
        shares = ", ".join(f"{name} {percent_text(seconds, total)}" for name, seconds in parts)
        yield f"What binds it, as estimated: {shares}."
    yield ""
    yield from align(
        [["measured", "estimated", "bound", "instruction", "name"], *map(_cells, answer["instructions"])], 2
    )
    if answer["buffers"]:
        yield ""
        yield "Held while nothing uses them:"
        heading = ["bytes", "unused for", "row", "role", "name"]
        digits = MEASURED_DIGITS if answer["measured_seconds"] is not None else 2
        rows = [
            [
                *(bytes_text(one["bytes"]), seconds_text(one["unused_seconds"], digits), str(one["row"])),
                *(one["role"], one["op_name"] or one["name"] or "-"),
            ]
            for one in answer["buffers"]
        ]
        yield from align([heading, *rows], 2)


def _cells(one: TimedInstructionJson) -> list[str]:
    return [
        seconds_text(one["measured_seconds"] or 0, MEASURED_DIGITS) or "-",
        seconds_text(one["estimated_seconds"] or 0) or "-",
        *(one["bound"] or "-", one["name"], one["op_name"] or "-"),
    ]
