"""Tags by which the TPU compiler says what an on-chip allocation of a Pallas kernel is for."""

from __future__ import annotations

import re

from tb_memplugin.model.kernels import KernelBuffer
from tb_memplugin.model.kinds import Role
from tb_memplugin.readers.oom_text.rows import Buffer

WINDOW = re.compile(
    r"(input|output) window allocation for operator \w{1,20} (\d{1,6})\. The window shape is (\S{1,400}?), "
    r"while the full shape is (\S{1,400}?)\.(?=\s|$)"
)
BUFFERING = re.compile(r"This allocation has (\d{1,4}) buffering level")


def kernel_buffer(tag: str, size: int, shape: str = "") -> KernelBuffer:
    """Return the operand, the block and the buffering of an allocation with this tag."""
    window, levels = WINDOW.search(tag), BUFFERING.search(tag)
    buffers = max(int(levels[1]), 1) if levels else 1
    if window is None:
        return KernelBuffer(tag.strip(), size, shape, "", buffers)
    return KernelBuffer(f"{window[1]} window {window[2]}", size, window[3], window[4], buffers)


def row_of(buffer: KernelBuffer, kernel: str, scope: str = "") -> Buffer:
    """Return an allocation of a kernel as a row."""
    buffers = f", {buffer.buffers:,} buffers" if buffer.buffers > 1 else ""
    name = f"{kernel}: {buffer.operand}{buffers}" if kernel else f"{buffer.operand}{buffers}"
    return Buffer(buffer.bytes, name=name, op="custom-call", scope=scope, shape=buffer.shape, role=Role.TEMPORARY)
