"""Types of JSON that several answers contain. Sizes are in bytes; None is unknown."""

from collections.abc import Iterable
from itertools import chain
from typing import Protocol, TypedDict

from tb_memplugin.questions.records import records


class CaveatJson(TypedDict):
    """A limitation of the file or of its reconstruction."""

    code: str
    """One of the [codes](#caveats)."""
    text: str
    """The caveat as a sentence."""
    bytes: int | None
    """The number of bytes that it affects."""


class SummaryJson(TypedDict):
    """One recording in a list of recordings."""

    id: str
    """Run, host, title and memory, joined by a vertical bar; the same in every process."""
    kind: str
    """`program`, `allocator`, `device_profile`, `torch_snapshot`, `torch_timeline`, `oom` or `watch`."""
    title: str
    """The program with its id, or with its file where several have modules of one name; the allocator, or the file."""
    backend: str
    """`CPU`, `GPU` or `TPU`: the XLA backend that compiled the program; `unknown` for other recordings."""
    run: str
    """The run in the logdir; empty for a file."""
    host: str
    """The host that wrote the profile."""
    memory: str
    """The memory: `HBM`, `cuda:0`, `GPU_0_bfc`."""
    axis: str
    """`PROGRAM_ORDER` (the schedule), `TIME` (events) or `INSTANT` (one moment)."""
    length: int
    """The number of positions of the axis."""
    time_ns: int | None
    """The time at which a snapshot was taken, or a recording over time began, since 1970."""
    end_ns: int | None
    """The last event of a recording over time, since 1970."""
    step: int | None
    """The training step of a snapshot."""
    allocations: int
    """The number of buffers or allocations."""
    peak_bytes: int
    """The most live bytes at one position."""
    peak_position: int
    """That position; -1 is before the first."""
    reserved_bytes: int | None
    """The largest number of bytes that the program requests from the device, or that the allocator reserves."""
    reported_peak_bytes: int | None
    """The peak that JAX or the allocator reports. JAX's is the sum over all memories of a program, and is given for
    the main memory only."""
    capacity_bytes: int | None
    """The size of the memory, or the part of it that a program may use."""
    capacity_source: str
    """The source of that figure, such as the chip's name and the file that has it; empty if it is the recording."""
    live: bool
    """For `watch`: the job has not finished the file, so it runs or was killed."""
    interval_ns: int | None
    """The time between samples, for recordings that are sampled."""
    reason: str | None
    """The reason why a snapshot was saved, such as `90 % of capacity`; null where the script asked for it."""
    caveats: list[CaveatJson]
    """Facts that are missing from the file, or were reconstructed."""


class ProblemJson(TypedDict):
    """A file, or a part or a recording of one, that cannot be read or analyzed, and what to do about it."""

    file: str
    """The path of the file."""
    text: str
    """The fault and its remedy, as a sentence."""


class LeftOutProgramsJson(TypedDict):
    """The programs of a large dump that a list leaves out, and the most bytes that one of them reserves."""

    programs: int
    """The number of programs that are not listed."""
    bytes: int
    """The most that one of them reserves."""


class FigureJson(TypedDict):
    """A number of bytes with its label and a sentence that defines it."""

    key: str
    label: str
    bytes: int | None
    text: str


class OutOfMemoryJson(TypedDict):
    """An out-of-memory failure: the request, the memory that was free, and the cause."""

    asked_bytes: int | None
    """The requested bytes."""
    free_bytes: int | None
    """The free bytes."""
    largest_free_bytes: int | None
    """The largest free block."""
    capacity_bytes: int | None
    """The size of the memory."""
    in_use_bytes: int | None
    """The bytes in use."""
    missing_bytes: int | None
    """The number of bytes that were missing."""
    phase: str
    """`compile`, `load` or `run`."""
    used_is: str
    """The kind of the bytes: `in use`, or `needed` by a program that could not start."""
    reason: str
    """`host memory`, `one allocation is larger than the memory`, `free memory is fragmented`, `too much memory is in
    use`, `the figures do not explain it` or `unknown`."""
    wanted_by: str
    """The operation, program or array that needed the memory."""
    sentences: list[str]
    """The request, the cause, and the hints."""
    lines_before: list[str]
    """The last lines of the log before the error, the oldest first; of lines that differ in numbers alone, one."""


class StackFrameJson(TypedDict):
    """One frame of a call stack."""

    function: str
    """The function."""
    file: str
    """The file."""
    line: int
    """The line."""


class RowTextsJson(TypedDict):
    """The texts of a buffer or allocation."""

    row: int
    """The row in the recording."""
    name: str
    """The buffer's or allocation's name."""
    op: str
    """The instruction's opcode, or the operator."""
    op_name: str
    """The model path."""
    shape: str
    """The shape with its layout."""
    source: str
    """The user's innermost source line; empty where it is unknown."""


class SiteJson(RowTextsJson):
    """An allocation site, and the allocation that stands for it."""

    site: str
    dtype: str
    size: int | None
    stack: list[StackFrameJson]
    """The innermost frame comes first."""


class AboutFile(Protocol):
    """A problem of a file; readers, analyses and sources of recordings have types of their own."""

    @property
    def file(self) -> str: ...
    @property
    def text(self) -> str: ...


def problems_json(*lists: Iterable[AboutFile]) -> list[ProblemJson]:
    """Return lists of problems as one for JSON."""
    return records(ProblemJson, chain(*lists))
