"""The schedule of a compiled program."""

from __future__ import annotations

from dataclasses import dataclass

from tb_memplugin.model.arrays import I32
from tb_memplugin.model.dataflow import DataflowValues
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.text import Text

# Frames of XLA's runtimes that allocate a program's own buffers: all of them on GPU; the outputs on TPU, where
# temporaries are on the core's stack.
PROGRAM_FRAMES = ("Build buffer allocations", "AllocateOutputBufferWithInputReuse")


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled program's flattened schedule: one row per position of the axis."""

    module: str
    entry_computation: str
    memory_space: int  # XLA's buffer color
    name: Text
    op: Text
    scope: Text
    computation: Text
    stack: I32
    scoped_bytes: int = 0  # the largest scoped allocation of an instruction (TPU VMEM)
    scoped_instruction: str = ""  # the instruction with that allocation
    value: I32 | None = None  # per row of `allocations`: its number in `values`, -1 if not in the file
    values: Lazy[DataflowValues] | None = None
    devices: int = 1  # number of devices that the program is partitioned over
    copies: I32 | None = None  # per leaf of the arguments: number of devices with the same part; None: unknown
    for_cpu: bool = False  # compiled by XLA's CPU backend, for certain
