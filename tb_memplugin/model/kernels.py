"""On-chip memory of Pallas kernels."""

from __future__ import annotations

from dataclasses import dataclass


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
