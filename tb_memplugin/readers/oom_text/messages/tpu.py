"""Messages of the TPU's compiler and runtime. Those of the compiler may list the allocations of the program:

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
from dataclasses import replace

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.out_of_memory import KernelBuffer, OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import (
    OP_NAME,
    Buffer,
    Failure,
    found_text,
    listed_items,
    named_buffers,
    size_of,
    source_of,
)
from tb_memplugin.readers.oom_text.message import FoundMessage, MessageKind
from tb_memplugin.sizes import PRINTED as SIZE
from tb_memplugin.sizes import printed_size

WINDOW = re.compile(
    r"(input|output) window allocation for operator \w{1,20} (\d{1,6})\. The window shape is (\S{1,400}?), "
    r"while the full shape is (\S{1,400}?)\.(?=\s|$)"
)
BUFFERING = re.compile(r"This allocation has (\d{1,4}) buffering level")
TOTAL = re.compile(rf"Total \w{{1,20}} usage >= ({SIZE})")
RESERVED = re.compile(rf"(?m)^reserved\s+({SIZE})")
ARGUMENTS = re.compile(rf"(?m)^arguments\s+({SIZE})")
OUTPUT = re.compile(rf"Output size ({SIZE})(?:; shares ({SIZE}) with arguments)?")
TOTAL_PART = re.compile(rf"(?m)^program\s+({SIZE})")
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
ATTRIBUTES = re.compile(r"\A :: (#\w{1,60}) ?(?:\[([^\n]{0,4000}?)\](?= ::|\s{0,40}$|\n))?(?: :: ([^\n]{1,400}))?")
SPACE = re.compile(r"\bspace ?= ?'?(\w{1,20})")
ATTRIBUTE_SHAPE = re.compile(r"\bshape ?= ?'([^'\n]{1,400})'")
ATTRIBUTE_TAG = re.compile(r"\btag ?= ?'([^'\n]{1,2000})'?")
DEVICE = re.compile(r"[^\n]{0,400}?\((\d{1,4}x\d{1,4}x\d{1,4}_\w{1,20})\)")


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


def _memory(name: str) -> str:
    """Return the name that recordings of programs have for a memory."""
    return "Sflag" if name.lower() == "sflag" else name.upper()


def _named(failure: Failure, found: FoundMessage) -> Failure:
    return replace(failure, memory=_memory(found.name("space")))


def _listed(failure: Failure, found: FoundMessage) -> Failure:
    """Add the allocations of a program that follow its message."""
    items, cut = listed_items(LIST, ITEM, found.block)
    sized = ((size_of(item), text) for item, text in items)
    listed = [(found_text(KIND, text).strip(), _buffer(size, text)) for size, text in sized if size is not None]
    totals = _totals(found.block, failure.used or 0, bool(listed))
    rows = named_buffers([*totals, *(buffer for _, buffer in listed), *_unlisted_parts(found.block, listed)])
    # The listed allocations that have a tag are those of kernels.
    tagged = ((size_of(item), tag) for item, text in items if (tag := TAG.search(text)))
    of_kernels = tuple(kernel_buffer(tag[1], size) for size, tag in tagged if size is not None)
    failure = _named(failure, found).saying(kernel_buffers=of_kernels)
    return replace(failure, rows=rows, cut=cut, caveats=_caveats(found.block))


def _totals(block: str, used: int, has_list: bool) -> list[Buffer]:
    """Build rows of the arguments, of the memory reserved by the system, and of a program without a list."""
    reserved, arguments, total = (size_of(p.search(block)) for p in (RESERVED, ARGUMENTS, TOTAL))
    found = []
    # On some chips the used bytes include reserved memory; on others neither used bytes nor capacity do.
    if reserved and total is not None and abs(total - used) * 1000 < used:
        found.append(Buffer(reserved, name="reserved by the system"))
    if arguments:
        found.append(Buffer(arguments, name="arguments", role=Role.PARAMETER))
    if not has_list and not LIST.search(block) and (program := size_of(TOTAL_PART.search(block))):
        found.append(Buffer(program, name="program", role=Role.TEMPORARY))
    return found


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


def _of_cores(failure: Failure, found: FoundMessage) -> Failure:
    """Add up the usage of TensorCores and SparseCores, which share one memory."""
    tensor, sparse = found.figure("tensor_core") or 0, found.figure("sparse_core") or 0
    rows = named_buffers([Buffer(tensor, name="TensorCore"), Buffer(sparse, name="SparseCore")])
    total = tensor + sparse
    return replace(failure.saying(asked=total), rows=rows, used=total)


def _of_allocation(failure: Failure, found: FoundMessage) -> Failure:
    """Add the attributes of one allocation: its memory, its shape and what it is for."""
    head = ATTRIBUTES.match(found.block)
    attributes, program = (head[2] or "", (head[3] or "").strip()) if head else ("", "")
    space, tag, shape = (pattern.search(attributes) for pattern in (SPACE, ATTRIBUTE_TAG, ATTRIBUTE_SHAPE))
    memory, said = _memory(space[1]) if space else "HBM", failure.out_of_memory
    if tag is None or memory == "HBM":
        wanted_by = (tag[1] if tag else "") or program or (head[1] if head else "")
        return replace(failure.saying(wanted_by=wanted_by), memory=memory)
    buffer = kernel_buffer(tag[1], said.asked or 0, shape[1] if shape else "")
    wanted_by = f"{buffer.operand} of {program}" if program else buffer.operand
    failure = failure.saying(kernel_buffers=(buffer,), wanted_by=wanted_by)
    return replace(failure, memory=memory, rows=named_buffers([row_of(buffer, program)]))


def _of_kernel(failure: Failure, found: FoundMessage) -> Failure:
    """Name the kernel. The compiler has a limit for each, below the size of the memory."""
    said = failure.out_of_memory
    wanted_by = said.wanted_by.partition(" = ")[0].strip().rstrip(".").removeprefix("%")[:300]
    failure = failure.saying(wanted_by=wanted_by, kernel_limit=said.capacity is not None)
    return replace(failure, memory=_memory(found.name("space") or "vmem"), used=said.asked)


def _in_thousands(failure: Failure, found: FoundMessage) -> Failure:
    """Read the estimate for a Pallas kernel, which is printed in powers of 1000."""
    asked, capacity = (printed_size(found.name(name), decimal=True) for name in ("needed", "room"))
    return replace(_named(failure, found).saying(asked=asked, capacity=capacity), used=asked)


def _at_runtime(failure: Failure, found: FoundMessage) -> Failure:
    """Tell a program from a buffer, and name the device."""
    device, reserving = DEVICE.match(found.block), found.name("verb") == "reserve"
    loading = reserving or "loading" in found.values
    failure = failure.saying(
        # A program is loaded at one end of the memory, so only free bytes at that end count.
        largest_free=found.figure("reservable" if reserving else "largest_free"),
        phase=OutOfMemoryPhase.LOAD if loading else OutOfMemoryPhase.RUN,
        wanted_by=found.name("program"),
        program=found.name("program"),
    )
    return replace(failure, memory=f"HBM {device[1]}" if device else "HBM")


COMPILE = OutOfMemoryPhase.COMPILE
EXCEEDED = r"Exceeded \w{1,20} capacity by {exceeded}"
SCOPED = (
    r"[Ss]coped allocation with size {asked} and limit {capacity}(?: exceeded scoped \w{1,20} limit by {exceeded})?"
)
GIB, MIB = 2**30, 2**20

MESSAGES = (
    MessageKind(
        r"Ran out of memory in memory space (?P<space>\w{1,20})(?:\.| |…){1,4}\*{0,2}Used {asked} of {capacity} "
        r"\w{1,20}",
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in\nmemory space vmem. Used 65.05M of "
        "64.00M vmem. Exceeded vmem capacity by 1.05M",
        {"memory": "VMEM", "asked": 68_209_869, "capacity": 64 * MIB, "exceeded": 1_101_005},
        source="https://github.com/jax-ml/jax/issues/38988", facts=(EXCEEDED,),
        tool="tpu", phase=COMPILE, needs=True, finish=_listed,
    ),
    MessageKind(
        r"Ran out of memory in memory space (?P<space>\w{1,20}) (?:while allocating on stack|\.\.\.) for "
        r"(?P<wanted_by>(?:(?! ?[Ss]coped allocation|Ran out of memory in)[^\n]){1,8000})",
        "CompileTimeScopedVmemOom: Ran out of memory in memory space vmem ... for\n%flash_attention.1 = "
        "bf16[1,16,25344,80] ... Scoped allocation with size\n37.22M and limit 32.00M exceeded scoped vmem limit by "
        "5.22M.",
        {"memory": "VMEM", "asked": 39_027_999, "capacity": 32 * MIB, "wanted_by": "flash_attention.1"},
        source="https://github.com/vllm-project/tpu-inference/issues/3407",
        tool="tpu", phase=COMPILE, needs=True, facts=(SCOPED,), finish=_of_kernel,
    ),
    MessageKind(
        SCOPED,
        "Scoped allocation with size 19.85M and limit 16.00M exceeded scoped vmem limit by 3.85M.",
        {"memory": "VMEM", "asked": 20_814_234, "capacity": 16 * MIB},
        tool="tpu", phase=COMPILE, needs=True, finish=_of_kernel,
    ),
    MessageKind(
        r"Used {asked} of {capacity} (?P<space>hbm|vmem|smem|sflag)\.",
        "Ran out of memory ... Used 20.44G of 15.75G hbm. Exceeded hbm capacity by 4.70G.",
        {"memory": "HBM", "asked": 21_947_282_883, "capacity": 16_911_433_728, "exceeded": 5_046_586_573},
        tool="tpu", phase=COMPILE, needs=True, unless="Ran out of memory in memory space",
        facts=(EXCEEDED,), finish=_listed,
    ),
    MessageKind(
        r"Ran out of memory in memory space (?P<space>\w{1,20})",
        "Mosaic failed to compile TPU kernel: Ran out of memory in memory space vmem", {"memory": "VMEM"},
        tool="tpu", phase=COMPILE, vague=True, facts=(EXCEEDED,), finish=_named,
    ),
    MessageKind(
        r"TPU TensorCore Hbm usage: {tensor_core}, SparseCore Hbm usage:? {sparse_core}, "
        r"exceeding available bytes: {capacity}",
        "RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 34.50G, SparseCore Hbm usage 174.00G, exceeding available "
        "bytes: 95.50G",
        {"memory": "HBM", "asked": 223_875_170_304, "capacity": 102_542_344_192},
        tool="tpu", memory="HBM", phase=COMPILE, finish=_of_cores,
    ),
    MessageKind(
        r"Allocation \(size={asked#}\) would exceed memory \(size={capacity#}\)",
        "Allocation (size=21474836480) would exceed memory (size=17179869184) :: #allocation14167 [shape = "
        "'f32[320,4096,4096]{1,2,0:T(8,128)}', space=hbm, size = 0xffffffffffffffff, tag = 'output of "
        "fusion.30572.remat@{1}'] :: <no-hlo-instruction>",
        {"memory": "HBM", "asked": 20 * GIB, "capacity": 16 * GIB, "wanted_by": "output of fusion.30572.remat@{1}"},
        tool="tpu", phase=COMPILE, needs=True, finish=_of_allocation,
    ),
    MessageKind(
        rf"Estimated (?P<needed>{SIZE}) exceeds (?P<room>{SIZE}) (?P<space>\w{{1,20}}) capacity",
        "Ran out of memory in memory space vmem. Estimated 268.96MB exceeds 67.11MB vmem capacity.",
        {"memory": "VMEM", "asked": 268_960_000, "capacity": 67_110_000},
        tool="tpu", phase=COMPILE, finish=_in_thousands,
    ),
    MessageKind(
        r"Aborting compilation early because it's unlikely to have enough (?:\w{1,20} )?memory\. "
        r"Requires {asked}, has {capacity} available",
        "Aborting compilation early because it's unlikely to have enough memory. Requires 20.50G, has 15.50G "
        "available.",
        {"memory": "HBM", "asked": 22_011_707_392, "capacity": 16_642_998_272},
        tool="tpu", memory="HBM", phase=COMPILE, needs=True,
    ),
    MessageKind(
        r"Ran out of memory on (?P<space>\w{1,20}), the total memory required for HLO temporaries \({asked}\) exceeds "
        r"available \w{1,20} \({capacity}\)\.(?: HLO module: (?P<program>[\w.<>-]{1,300}[\w>]))?",
        "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (98.50G) exceeds "
        "available HBM (94.50G). HLO module: jit_step.",
        {"memory": "HBM", "asked": 105_763_569_664, "capacity": 101_468_602_368, "program": "jit_step"},
        tool="tpu", phase=COMPILE, needs=True, finish=_named,
    ),
    MessageKind(
        r"(?:Error (?P<loading>loading program)(?: '(?P<program>[^'\n]{1,300})')?: )?"
        r"Attempting to (?P<verb>allocate|reserve) {asked}(?: at the bottom of memory)?\. That was not possible",
        "RESOURCE_EXHAUSTED: Attempting to allocate 31.00M. That was not possible. There are 58.50M free. Due to "
        "fragmentation, the largest contiguous region of free memory is 30.50M.; (0x0x0_HBM0)",
        {"memory": "HBM 0x0x0_HBM0", "asked": 31 * MIB, "free": 61_341_696, "largest_free": 31_981_568},
        tool="tpu", finish=_at_runtime, facts=(
            "There are {free} free", "reserved, and {reservable} reservable",
            "largest contiguous region of free memory is {largest_free}",
        ),
    ),
)  # fmt: skip
