"""XLA's messages about a failed allocation on GPU, with the buffers of the program, and about rematerialization.

Out of memory while trying to allocate 2110783616 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    1.02GiB
                 total allocation:    7.88GiB
Peak buffers:
    Buffer 1:
        Size: 4.89GiB
        Operator: op_name="jit(dot)/dot_general" source_file="gemma.py" source_line=175
        XLA Label: custom-call
        Shape: f32[5104,257152]
        ==========================
"""

import re
from dataclasses import replace

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.out_of_memory import OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import (
    OP_NAME,
    Buffer,
    Failure,
    Rows,
    found_text,
    listed_items,
    named_buffers,
    no_rows,
    size_of,
    source_of,
)
from tb_memplugin.readers.oom_text.message import FoundMessage, MessageKind
from tb_memplugin.sizes import PRINTED as SIZE

EXECUTABLE = re.compile(
    r"\A[^\n]{0,100}\n?[\s.]{0,10}(?:\[tf-[^\]\n]{0,200}\] ?)?\[executable_name='([^'\n]{1,300})'\]"
)
# The head, then the allocator's own tags, then the statistics.
STATS = re.compile(r"\A[^\n]{0,400}\n{0,3}(?:\[[^\n]{0,400}\n)?BufferAssignment (?:OOM Debugging|stats)")
TOTAL = re.compile(rf"(?m)^total allocation:\s+({SIZE})")
PEAK = re.compile(r"Peak buffers:")
ITEM = re.compile(rf"(?m)^Buffer (\d{{1,5}}):\s*\nSize: ({SIZE})")
PARAMETER = re.compile(r"(?m)^Entry Parameter Subshape: ([^\n]{1,2000})")
SHAPE = re.compile(r"(?m)^Shape: ([^\n]{1,2000})")
LABEL = re.compile(r"(?m)^XLA Label: ([^\n]{1,200})")


def _with_program(failure: Failure, found: FoundMessage) -> Failure:
    """Add the program of a failed allocation, and the buffers of its peak."""
    named = EXECUTABLE.match(found.block)
    program = named[1] if named else ""
    rows, used, cut = _program(found.block) if STATS.match(found.block) else (no_rows(), None, False)
    failure = failure.saying(wanted_by=program, program=program)
    return replace(failure, rows=rows, used=used, cut=cut, program=program)


def _without_head(failure: Failure, found: FoundMessage) -> Failure:
    rows, used, cut = _program(found.block)
    return replace(failure, rows=rows, used=used, cut=cut)


def _rematerialized(failure: Failure, found: FoundMessage) -> Failure:
    """Read the warning that rematerialization did not reduce memory enough, which precedes the failure."""
    needed, before = found.figure("asked") or 0, found.figure("before")
    saving = "Rematerialization saved these bytes, but the program still exceeds its limit"
    # A negative limit means that arguments and outputs alone exceed it.
    limit = 0 if found.name("sign") else found.figure("capacity")
    caveat = Caveat(CaveatCode.REMATERIALIZED, saving, before - needed if before else None)
    return replace(failure.saying(capacity=limit), caveats=(caveat,))


def _program(block: str) -> tuple[Rows, int | None, bool]:
    """Return the buffers live at the program's peak, the bytes it needs, and whether the list is cut off."""
    items, cut = listed_items(PEAK, ITEM, block)
    sized = [(item[1], size_of(item, 2), text) for item, text in items]
    buffers = [_buffer(f"Buffer {number}", size, text) for number, size, text in sized if size is not None]
    return named_buffers(buffers), size_of(TOTAL.search(block)), cut


def _buffer(name: str, size: int, text: str) -> Buffer:
    parameter = PARAMETER.search(text)
    return Buffer(
        size,
        name=name,
        op="parameter" if parameter else found_text(LABEL, text).strip(),
        op_name=found_text(OP_NAME, text),
        shape=found_text(PARAMETER if parameter else SHAPE, text).strip(),
        role=Role.PARAMETER if parameter else Role.UNKNOWN,
        source=source_of(text),
    )


MESSAGES = (
    MessageKind(
        r"Out of memory while trying to allocate {asked}(?: with allocator (?P<allocator>\w{1,100}) on device "
        r"\d{1,5})?",
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 68.95GiB with "
        "allocator GPU_0_bfc on device 0. [tf-allocator-allocation-error=''] [executable_name='jit__lambda']",
        {"memory": "GPU_0_bfc", "asked": 74_034_498_765, "program": "jit__lambda"},
        tool="xla", memory="{allocator}", finish=_with_program,
    ),
    MessageKind(
        r"Failed to allocate request for (?P<rounded>\S{1,20}) \({asked#}B\) on device ordinal (?P<device>\d{1,5})",
        "RuntimeError: Resource exhausted: Failed to allocate request for 32.00MiB (33554432B) on device ordinal 0",
        {"memory": "GPU 0", "asked": 2**25},
        tool="xla", memory="GPU {device}", finish=_with_program,
    ),
    MessageKind(
        r"BufferAssignment stats:",
        "BufferAssignment stats:\n     total allocation:    8.00GiB\nPeak buffers:\nBuffer 1:\nSize: 6.00GiB\n"
        "Operator: op_name=\"jit(f)/dot\"\nShape: f32[8,8]\n==========================",
        {"memory": "device memory"},
        tool="xla", vague=True, finish=_without_head,
    ),
    MessageKind(
        r"The byte size of input/output arguments \({asked#}\) exceeds the base limit \({capacity#}\)",
        "E0207 18:44:44.481770 1957515 gpu_hlo_schedule.cc:815] The byte size of input/output arguments (40000000000) "
        "exceeds the base limit (27028357120). This indicates an error in the calculation!",
        {"memory": "GPU", "asked": 40_000_000_000, "capacity": 27_028_357_120},
        tool="xla", memory="GPU", phase=OutOfMemoryPhase.COMPILE, needs=True,
    ),
    MessageKind(
        r"Can't reduce memory use below \S{1,20} \((?P<sign>-?){capacity#} bytes\) by rematerialization; only reduced "
        r"to \S{1,20} \({asked#} bytes\)(?:, down from \S{1,20} \({before#} bytes\))?",
        "W external/xla/xla/service/hlo_rematerialization.cc:2202] Can't reduce memory use below 23.81GiB (25567444992 "
        "bytes) by rematerialization; only reduced to 86.14GiB (92489619062 bytes), down from 95.71GiB (102770769072 "
        "bytes) originally",
        {"memory": "device memory", "asked": 92_489_619_062, "capacity": 25_567_444_992},
        tool="remat", phase=OutOfMemoryPhase.COMPILE, needs=True, finish=_rematerialized,
    ),
)  # fmt: skip
