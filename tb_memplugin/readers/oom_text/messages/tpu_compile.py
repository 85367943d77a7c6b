"""The TPU compiler's message about a program that does not fit.

Ran out of memory in memory space hbm. Used 17.60G of 16.00G hbm. Exceeded hbm capacity by 1.60G.

Total hbm usage >= 17.60G:
    reserved        528.00M
    program          17.08G
    arguments       unknown size

Output size unknown.

Program hbm requirement 17.08G:
    HLO temp         17.08G (92.8% utilization, 0.3% fragmentation (53.61M))

  Largest program allocations in hbm:

  1. Size: 512.00M
     Operator: op_type="OneHot" op_name="one_hot"
     Shape: f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)}
     Unpadded size: 40.50M
     XLA label: %fusion.1668 = f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)} fusion(...
     Allocation type: HLO temp
     ==========================

Tags say what an on-chip allocation of a Pallas kernel is for.
"""

import re
from collections.abc import Iterator, Sequence

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.out_of_memory import KernelBuffer, OutOfMemory, OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import (
    OP_NAME,
    Buffer,
    Failure,
    TextItem,
    blocks,
    found_text,
    listed_items,
    named_buffers,
    size_of,
    source_of,
)
from tb_memplugin.sizes import PRINTED as SIZE

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
    return Buffer(buffer.bytes, name=name, op="custom-call", op_name=scope, shape=buffer.shape, role=Role.TEMPORARY)


MARKS = ("Ran out of memory in memory space",)
HEAD = re.compile(
    rf"Ran out of memory in memory space (\w{{1,20}})\.\s+\*{{0,2}}Used ({SIZE}) of ({SIZE}) \w{{1,20}}\."
    rf"(?:\s+Exceeded \w{{1,20}} capacity by ({SIZE}))?"
)
TOTAL = re.compile(rf"Total \w{{1,20}} usage >= ({SIZE})")
RESERVED = re.compile(rf"(?m)^reserved\s+({SIZE})")
ARGUMENTS = re.compile(rf"(?m)^arguments\s+({SIZE})")
OUTPUT = re.compile(rf"Output size ({SIZE})(?:; shares ({SIZE}) with arguments)?")
PROGRAM = re.compile(rf"Program \w{{1,20}} requirement ({SIZE})")
PART = re.compile(rf"(?m)^(global|scoped|overlays)\s+({SIZE})")
LIST = re.compile(r"Largest program allocations in \w{1,20}")
ITEM = re.compile(rf"(?m)(?:^|={{10}} )\d{{1,4}}\\?\.\s+Size: ({SIZE})")
SHAPE = re.compile(r"(?m)^Shape: (\S[^\n]{0,2000})")
UNPADDED = re.compile(rf"(?m)^Unpadded size: ({SIZE})")
LABEL = re.compile(r"(?m)^XLA label: ([^\n]{0,8000})")
NAME = re.compile(r"%?([^\s=,()]{1,300})")
OPCODE = re.compile(r" ([a-z][a-z0-9-]{0,60})\(")
TAG = re.compile(r"(?m)^Tag: ([^\n]{1,2000})")
KIND = re.compile(r"(?m)^Allocation type: ([^\n]{1,80})")
OP_TYPE = re.compile(r'op_type="([^"\n]{0,200})"')
ROLES = {"HLO temp": Role.TEMPORARY, "scoped": Role.TEMPORARY, "Constant": Role.CONSTANT, "Argument": Role.PARAMETER}


def find(text: str) -> Iterator[Failure]:
    for head, block in blocks(HEAD, text):
        used, capacity, exceeded = (size_of(head, group) for group in (2, 3, 4))
        if used is None:
            continue
        items, cut = listed_items(LIST, ITEM, block)
        listed = _list_allocations(items)
        totals = _totals(block, used)
        rows = named_buffers([*totals, *(buffer for _, buffer in listed), *_unlisted_parts(block, listed)])
        out_of_memory = OutOfMemory(
            asked=used, capacity=capacity, exceeded=exceeded, phase=OutOfMemoryPhase.COMPILE,
            kernel_buffers=_kernel_buffers(items),
        )  # fmt: skip
        yield Failure(head.start(), "tpu", head[1].upper(), out_of_memory, rows,
            used=used, cut=cut, caveats=_caveats(block),
        )  # fmt: skip


def _totals(block: str, used: int) -> list[Buffer]:
    """Build rows of the arguments and of the memory reserved by the system, which have one size each."""
    reserved, arguments, total = (size_of(p.search(block)) for p in (RESERVED, ARGUMENTS, TOTAL))
    found = []
    # On some chips the used bytes include reserved memory; on others neither used bytes nor capacity do.
    if reserved and total is not None and abs(total - used) * 1000 < used:
        found.append(Buffer(reserved, name="reserved by the system"))
    if arguments:
        found.append(Buffer(arguments, name="arguments", role=Role.PARAMETER))
    return found


def _kernel_buffers(items: Sequence[TextItem]) -> tuple[KernelBuffer, ...]:
    """Return the listed allocations that have a tag: those of kernels."""
    tagged = ((size_of(item), tag) for item, text in items if (tag := TAG.search(text)))
    return tuple(kernel_buffer(tag[1], size) for size, tag in tagged if size is not None)


def _list_allocations(items: Sequence[TextItem]) -> list[tuple[str, Buffer]]:
    """Return each listed allocation with its type."""
    listed = []
    for item, text in items:
        if (size := size_of(item)) is not None:
            listed.append((found_text(KIND, text).strip(), _buffer(size, text)))
    return listed


def _buffer(size: int, text: str) -> Buffer:
    name, _, definition = found_text(LABEL, text).partition(" = ")
    called, opcode = NAME.match(name), OPCODE.search(f" {definition}")
    shape, scope, unpadded = found_text(SHAPE, text).strip(), found_text(OP_NAME, text), size_of(UNPADDED.search(text))
    if (tag := TAG.search(text)) is not None:
        return row_of(kernel_buffer(tag[1], size, shape), called[1] if called else "", scope)
    return Buffer(
        size,
        requested=size if unpadded is None else min(unpadded, size),
        name=called[1] if called else "",
        op=opcode[1] if opcode else found_text(OP_TYPE, text),
        op_name=scope,
        shape=shape,
        role=ROLES.get(found_text(KIND, text).strip(), Role.UNKNOWN),
        source=source_of(text),
    )


def _unlisted_parts(block: str, listed: list[tuple[str, Buffer]]) -> list[Buffer]:
    """Build rows of global, scoped and overlay allocations that are too small for the list."""
    program = PROGRAM.search(block)
    found = []
    for part in PART.finditer(block, program.end()) if program else ():
        listed_bytes = sum(buffer.size for kind, buffer in listed if kind == part[1])
        if (rest := (size_of(part, 2) or 0) - listed_bytes) > 0:
            found.append(Buffer(rest, name=f"{part[1]} allocations", role=ROLES.get(part[1], Role.UNKNOWN)))
    return found


def _caveats(block: str) -> tuple[Caveat, ...]:
    found = []
    if re.search(r"(?m)^arguments\s+unknown size", block):
        found.append(Caveat(CaveatCode.ARGUMENTS_UNKNOWN, "The compiler does not know the size of the arguments"))
    output = OUTPUT.search(block)
    unshared = (size_of(output) or 0) - (size_of(output, 2) or 0)
    if unshared > 0:
        text = "Outputs have memory of their own; they can reuse the memory of donated arguments"
        found.append(Caveat(CaveatCode.OUTPUTS_NOT_SHARED, text, unshared))
    return tuple(found)
