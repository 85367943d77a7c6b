"""The schedule of a compiled program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tb_memplugin.model.accelerators import Speed
    from tb_memplugin.model.arrays import F64, I32, I64
    from tb_memplugin.model.dataflow import DataflowValues
    from tb_memplugin.model.lazy import Lazy
    from tb_memplugin.model.out_of_memory import KernelMemory
    from tb_memplugin.model.text import Text

# Frames of XLA's runtimes that allocate a program's own buffers: all of them on GPU; the outputs on TPU, where
# temporaries are on the core's stack.
PROGRAM_FRAMES = ("Build buffer allocations", "AllocateOutputBufferWithInputReuse")


class Backend(StrEnum):
    """The XLA backend that compiled a program."""

    CPU = "CPU"
    GPU = "GPU"
    TPU = "TPU"
    UNKNOWN = "unknown"


class MeshAxis(NamedTuple):
    """An axis of a mesh of devices."""

    name: str
    size: int


class NamedSharding(NamedTuple):
    """A mesh, and the axes that split each dimension of an array. The other axes replicate it."""

    mesh: tuple[MeshAxis, ...]
    dimensions: tuple[tuple[MeshAxis, ...], ...]  # fewer than the array's: the rest is not split

    @property
    def parts(self) -> int:
        return prod(axis.size for axes in self.dimensions for axis in axes)

    @property
    def free_axes(self) -> tuple[MeshAxis, ...]:
        """The axes along which devices have the same part."""
        used = {axis.name for axes in self.dimensions for axis in axes}
        return tuple(axis for axis in self.mesh if axis.name not in used and axis.size > 1)


@dataclass(frozen=True, slots=True, eq=False)
class ArgumentShardings:
    """Shardings of a program's arguments, per leaf."""

    copies: I32  # number of devices with the same part
    code: I32  # index in `named`; -1 where the file has no names of axes
    named: tuple[NamedSharding, ...]
    parts: tuple[tuple[int, ...], ...]  # of each dimension; fewer than the array's: the rest is not split

    def parts_of(self, leaf: int, dimension: int) -> int:
        """Return the number of parts of a leaf's dimension; 1 if nothing is known of it."""
        parts = self.parts[leaf] if 0 <= leaf < len(self.parts) else ()
        return parts[dimension] if dimension < len(parts) else 1


@dataclass(frozen=True, slots=True, eq=False)
class FusedOperations:
    """Operations inside of fusions whose results are not the fusion's: they are never in memory. One row each."""

    position: I32  # of the fusion
    op_name: Text  # JAX's name of the operation
    shape: Text
    size: I64  # bytes that the result would take


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """The costs of the instruction at each position of a program's schedule, each time it runs."""

    name: Text
    backend: Backend
    times: F64  # how often it runs
    flops: F64  # of matrix products and convolutions
    nbytes: F64  # read from and written to the device's memory
    link_bytes: F64  # sent to other devices
    host_bytes: F64  # copied to or from the host's memory
    part_of: I32  # the position where the asynchronous operation starts that it is a part of; -1: it is of none
    ends: I32  # the position where the asynchronous operation starts that it waits for; -1: it waits for none


@dataclass(frozen=True, slots=True, eq=False)
class InstructionTimes:
    """Times of a program's instructions, measured by a profiler on some devices. One row for each that ran.

    Kernels that the profiler assigns to no instruction have rows, too.
    """

    name: Text  # of the instruction, or of the kernel
    runs: I64  # on all devices
    seconds: F64  # of all runs
    slowest: F64  # the mean of the device on which that is the longest
    fastest: F64
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled program's flattened schedule: one row per position of the axis."""

    module: str
    entry_computation: str
    memory_space: int  # XLA's buffer color
    name: Text
    op: Text
    op_name: Text
    computation: Text
    stack: I32
    scoped_bytes: int = 0  # the largest scoped allocation of an instruction (TPU VMEM)
    scoped_instruction: str = ""  # the instruction with that allocation
    kernels: tuple[KernelMemory, ...] = ()  # of the recording of VMEM; of main memory where no buffer is in VMEM
    value: I32 | None = None  # per row of `allocations`: its number in `values`, -1 if not in the file
    values: Lazy[DataflowValues] | None = None
    devices: int = 1  # number of devices that the program is partitioned over
    shardings: ArgumentShardings | None = None  # of the arguments; None: unknown, or one device
    backend: Backend = Backend.UNKNOWN
    fused: Lazy[FusedOperations] | None = None
    loops: Lazy[dict[str, int]] | None = None  # iterations of each loop, by JAX's name of it; 1 where it is unknown
    costs: Lazy[Costs] | None = None
    speed: Speed | None = None  # of the device that the program was compiled for, or that it ran on
    measured: Lazy[InstructionTimes] | None = None  # of a profile that may have times
