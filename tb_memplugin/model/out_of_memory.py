"""Out-of-memory failures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_memplugin.model.kernels import KernelBuffer


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
    each figure. `rank` orders the failures of one source: 0 is the most detailed.
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
    program: str = ""  # the module that the compiler refused
    kernel_limit: bool = False  # the capacity is the limit of one kernel, which an option of the compiler raises
    kernel_buffers: tuple[KernelBuffer, ...] = ()
