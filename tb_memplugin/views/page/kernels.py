"""On-chip memory of a program by Pallas kernel: what each may take, and what it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.endpoints.endpoint import InReport, endpoint
from tb_memplugin.views.endpoints.inputs import OUTLINE


class KernelJson(TypedDict):
    """A Pallas kernel with its on-chip memory; null where the file does not contain a figure."""

    name: str
    op_name: str
    limit_bytes: int | None
    """Memory that the compiler allows the kernel: `vmem_limit_bytes`, or the chip's default."""
    used_bytes: int | None
    """Windows into operands, with all their buffers, and scratch memory."""
    capacity_bytes: int | None
    operands: list[str]
    result: str


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
    return {
        "kernels": [
            {
                "name": kernel.name,
                "op_name": kernel.scope,
                "limit_bytes": kernel.limit_bytes,
                "used_bytes": kernel.used_bytes,
                "capacity_bytes": recording.capacity,
                "operands": list(kernel.operands),
                "result": kernel.result,
            }
            for kernel in ordered
        ]
    }


def rows(found: list[KernelJson]) -> Iterator[list[str]]:
    """Yield the table of kernels as cells, with a heading."""
    yield ["used", "limit", "kernel", "operands", "result"]
    for kernel in found:
        sizes = [bytes_text(kernel["used_bytes"]), bytes_text(kernel["limit_bytes"])]
        yield [*sizes, kernel["op_name"] or kernel["name"], " ".join(kernel["operands"]), kernel["result"]]
