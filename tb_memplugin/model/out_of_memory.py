"""Out-of-memory failures, and on-chip memory of Pallas kernels."""

from dataclasses import dataclass, field
from enum import StrEnum

RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"  # the status in the text of XLA's errors
# With these, XLA writes the buffers of each program, also of one that it refuses.
DUMP_FLAGS = "XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'"


@dataclass(frozen=True, slots=True)
class KernelBuffer:
    """On-chip memory of a kernel: a window into an operand, or scratch memory.

    `shape` is that of one block, `full_shape` that of the operand. `bytes` is of all `buffers`: two, where one is
    filled while the other is used, or none where the operand itself is in VMEM.
    """

    operand: str
    bytes: int
    shape: str = ""
    full_shape: str = ""
    buffers: int = 1


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """On-chip memory of one Pallas kernel, in bytes: its scratch memory with the windows into its operands.

    `limit_bytes` is what the compiler allows the kernel, `used_bytes` what it takes; None where the file lacks it.
    """

    name: str  # of the instruction
    op_name: str
    limit_bytes: int | None
    used_bytes: int | None
    operands: tuple[str, ...]  # shapes
    result: str  # shape
    buffers: tuple[KernelBuffer, ...] = ()

    @property
    def other_bytes(self) -> int | None:
        """Memory of the compiler beside windows and scratch memory, as for registers that it spills, and padding."""
        if self.used_bytes is None or not self.buffers:
            return None
        return max(self.used_bytes - sum(buffer.bytes for buffer in self.buffers), 0)


@dataclass(frozen=True, slots=True)
class MemoryShare:
    """Bytes of a device's memory and their use, as the start-up lines of an inference engine state them."""

    holder: str
    bytes: int


class OutOfMemoryPhase(StrEnum):
    """The moment of a failure."""

    COMPILE = "compile"  # the compiler adds up the program's needs; nothing has been allocated
    LOAD = "load"  # the program is loaded onto the device
    RUN = "run"


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """A request that a memory could not satisfy, in bytes; None where the source has no such figure.

    `asked` is one allocation; when compiling, it is everything the program needs. `free` is the total that was free,
    `largest_free` its largest block. `exceeded` is the excess over the capacity as the source prints it, which rounds
    each figure. `rank` orders the failures of one source: 0 is the most detailed. `request`, `reason` and `advice` are
    sentences about this kind of failure; empty where the general ones apply.
    """

    asked: int | None = None
    free: int | None = None
    largest_free: int | None = None
    capacity: int | None = None
    in_use: int | None = None
    exceeded: int | None = None
    phase: OutOfMemoryPhase = OutOfMemoryPhase.RUN
    host: bool = False  # host memory, not an accelerator's
    wanted_by: str = ""  # the operation, program or array that needed it
    rank: int = 0
    program: str = ""  # the module that the error names
    kernel_limit: bool = False  # the capacity is the limit of one kernel, which an option of the compiler raises
    kernel_buffers: tuple[KernelBuffer, ...] = ()
    request: str = ""
    reason: str = ""
    advice: tuple[str, ...] = ()
    ledger: tuple[MemoryShare, ...] = ()  # of the device, where the text states it
    lines_before: tuple[str, ...] = field(default=(), compare=False)  # of the log, the last ones before the error
