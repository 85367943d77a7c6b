"""On-chip memory of a program by Pallas kernel: what each may take, and what it takes."""

from collections.abc import Iterator
from typing import TypedDict

from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import OUTLINE
from tb_memplugin.questions.records import record
from tb_memplugin.sizes import bytes_text


class KernelBufferJson(TypedDict):
    """A window into an operand of a kernel, or scratch memory; `bytes` is of all its buffers together."""

    name: str
    """The window or the scratch memory."""
    bytes: int
    """Of all its buffers together."""
    buffers: int
    """2, where one is filled while the other is used; 0 where the operand itself is in VMEM."""
    shape: str
    """The shape of one block."""
    full_shape: str
    """The shape of the operand; empty for scratch memory."""


class KernelJson(TypedDict):
    """A Pallas kernel with its on-chip memory; null where the file does not contain a figure."""

    name: str
    """The instruction."""
    op_name: str
    """Its model path."""
    limit_bytes: int | None
    """The bytes that the compiler allows the kernel: `vmem_limit_bytes`, or the chip's default."""
    used_bytes: int | None
    """The bytes that it takes: windows into operands with all their buffers, and scratch memory."""
    capacity_bytes: int | None
    """The size of the memory."""
    operands: list[str]
    """The shapes of its operands."""
    result: str
    """The shape of its result."""
    buffers: list[KernelBufferJson]
    """Windows into operands, and scratch memory; empty where the kernel's code cannot be read."""
    other_bytes: int | None
    """Memory of the compiler beside them, as for registers that it spills."""


class KernelsJson(TypedDict):
    """The kernels of a program, the one that takes most first."""

    kernels: list[KernelJson]


def has_kernels(recording: Recording) -> bool:
    return recording.program is not None and bool(recording.program.kernels)


@endpoint("kernels", OUTLINE, report=InReport(has_kernels))
def kernels(recording: Recording) -> KernelsJson:
    """Return the kernels of a recording of VMEM; none for other memories."""
    found = recording.program.kernels if recording.program is not None else ()
    ordered = sorted(found, key=lambda kernel: (-(kernel.used_bytes or 0), -(kernel.limit_bytes or 0), kernel.name))
    capacity = None if recording.is_main_memory else recording.capacity
    return {
        "kernels": [
            record(
                KernelJson,
                kernel,
                capacity_bytes=capacity,
                buffers=[record(KernelBufferJson, buffer, name=buffer.operand) for buffer in kernel.buffers],
            )
            for kernel in ordered
        ]
    }


def rows(found: list[KernelJson]) -> Iterator[list[str]]:
    """Yield the table of kernels and their buffers as cells, with a heading."""
    yield ["used", "limit", "kernel", "block", "of"]
    for kernel in found:
        whole = "" if kernel["buffers"] else " ".join([*kernel["operands"], "->", kernel["result"]])
        sizes = [bytes_text(kernel["used_bytes"]), bytes_text(kernel["limit_bytes"])]
        yield [*sizes, kernel["op_name"] or kernel["name"], "", whole]
        for buffer in kernel["buffers"]:
            count = {0: " (in VMEM itself)", 1: ""}.get(buffer["buffers"], f" x {buffer['buffers']}")
            yield [
                bytes_text(buffer["bytes"]),
                "",
                f"  {buffer['name']}",
                f"{buffer['shape']}{count}",
                buffer["full_shape"],
            ]
        if kernel["other_bytes"]:
            yield [bytes_text(kernel["other_bytes"]), "", "  of the compiler (such as spilled registers)", "", ""]
