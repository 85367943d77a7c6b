"""PyTorch's messages, as worded in versions 1.0 to 2.15, for CUDA and other devices. They have sums and no tensors."""

import re
from dataclasses import replace

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.readers.oom_text.failure import Buffer, Failure, named_buffers, size_of
from tb_memplugin.readers.oom_text.message import MESSAGE_CHARS, FoundMessage, MessageKind, PrintedFigure
from tb_memplugin.readers.torch_snapshot.segments import segment_bytes
from tb_memplugin.sizes import PRINTED as SIZE

PROCESS = re.compile(rf"Process\s+(\d{{1,10}})\s+has\s+({SIZE})\s+memory\s+in\s+use")


def _with_sums(failure: Failure, found: FoundMessage) -> Failure:
    """Count PyTorch's own free memory as free, and list what PyTorch and other processes hold."""
    said, total, free, allocated = (failure.out_of_memory, *map(found.figure, ("capacity", "free", "allocated")))
    unallocated, reserved = found.figure("unallocated"), found.figure("reserved")
    if unallocated is None and allocated is not None and reserved is not None:
        unallocated = max(reserved - allocated, 0)
    # On Windows, the driver gives machine memory where the device has no more: that PyTorch's free memory is there.
    is_beyond = total is not None and (allocated or 0) > total
    free_in_total = None if free is None else free + (0 if is_beyond else unallocated or 0)
    device_in_use = None if total is None or free_in_total is None or free_in_total > total else total - free_in_total
    processes = _processes(found.block[:MESSAGE_CHARS], allocated, unallocated, device_in_use)
    rows = named_buffers(_buffers(allocated or 0, found.figure("private") or 0, processes))
    in_use = device_in_use if device_in_use is not None or allocated is None else rows.bytes
    # The device's free memory can be mapped as one block. PyTorch's own free memory is fragmented.
    largest_free = free if free and said.asked and free >= segment_bytes(said.asked) else None
    device, number = found.name("device"), found.figure("number")
    _explain(found, device, said.asked or 0, free_in_total)
    memory = device if number is None else f"{device.lower()}:{number:d}"
    failure = failure.saying(free=free_in_total, largest_free=largest_free, in_use=in_use)
    caveats = _caveats(unallocated, found.figure("allowed"))
    return replace(failure, memory=memory, rows=rows, used=in_use, cut=total is None, caveats=caveats)


def _explain(found: FoundMessage, device: str, asked: int, free: int | None) -> None:
    """Tell a limit from a shortage."""
    allowed, allocated, unallocated, total = map(found.figure, ("allowed", "allocated", "unallocated", "capacity"))
    would_have = (allocated or 0) + (unallocated or 0) + asked  # PyTorch counts what it has reserved
    if allowed is not None and allocated and would_have > ROUNDED * allowed and (free or 0) >= asked:
        found.values["over"] = PrintedFigure(max(would_have - allowed, asked))
    elif device == "XPU" and asked * 1.01 > XPU_LIMIT and (free is None or free >= asked):
        found.values["single"] = PrintedFigure(XPU_LIMIT)
    elif device == "HIP" and total is not None and asked > total:
        found.values["driver"] = PrintedFigure(total)


def _buffers(allocated: int, private: int, processes: list[Buffer]) -> list[Buffer]:
    found = [Buffer(max(allocated - private, 0), name="allocated by PyTorch")] if allocated else []
    if private:
        found.append(Buffer(private, name="allocated by PyTorch in private pools (CUDA graphs)"))
    return found + processes


def _processes(message: str, allocated: int | None, unallocated: int | None, in_use: int | None) -> list[Buffer]:
    """Build rows of the device's other processes, and of this one's memory outside PyTorch where it is listed too.

    In a container PyTorch cannot identify itself among the device's processes and lists itself by a number. Its tensors
    are then counted twice, which shows when the sum exceeds the device's memory in use.
    """
    found = [(size_of(process, 2) or 0, process[1]) for process in PROCESS.finditer(message)]
    own = (allocated or 0) + (unallocated or 0)
    itself = -1
    if in_use is not None and sum(size for size, _ in found) + (allocated or 0) > in_use:
        itself = max((k for k, (size, _) in enumerate(found) if size >= own), key=lambda k: found[k], default=-1)
    return [
        Buffer(size - own, name=f"this process ({number}) beyond PyTorch")
        if k == itself
        else Buffer(size, name=f"process {number}")
        for k, (size, number) in enumerate(found)
    ]


def _caveats(unallocated: int | None, allowed: int | None) -> tuple[Caveat, ...]:
    entries = (
        (CaveatCode.RESERVED_UNALLOCATED, "Reserved by PyTorch but not used by tensors; counted as free", unallocated),
        (CaveatCode.LIMITED, "PyTorch's limit, set by set_per_process_memory_fraction", allowed),
    )
    return tuple(Caveat(code, text, size) for code, text, size in entries if size)


def _of_metal(failure: Failure, found: FoundMessage) -> Failure:
    """List PyTorch's and the other allocations of Metal."""
    allocated, others = found.figure("allocated") or 0, found.figure("others") or 0
    rows = [Buffer(allocated, name="allocated by PyTorch"), Buffer(others, name="other Metal allocations")]
    in_use, capacity = allocated + others, failure.out_of_memory.capacity or 0
    failure = failure.saying(free=max(capacity - in_use, 0), in_use=in_use)
    return replace(failure, rows=named_buffers(rows), used=in_use)


GIB, MIB = 2**30, 2**20
XPU_LIMIT = 4 * GIB
ROUNDED = 0.995  # of a size that is printed with two decimals

MESSAGES = (
    MessageKind(
        r"(?P<device>[A-Z]{2,8}) out of memory\. Tried to allocate {asked}",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 32.00 "
        "GiB of which 512.00 MiB is free. Process 19239 has 14.00 GiB memory in use. Including non-PyTorch memory, "
        "this process has 17.50 GiB memory in use. Of the allocated memory 15.00 GiB is allocated by PyTorch, with "
        "1.00 GiB allocated in private pools (e.g., CUDA Graphs), and 1.00 GiB is reserved by PyTorch but unallocated.",
        {"memory": "cuda:0", "asked": 3 * GIB, "free": 1536 * MIB, "capacity": 32 * GIB, "in_use": 31_232 * MIB},
        "torch", facts=(
            "[GN]PU {number#}", "total capac(?:i)?ty of {capacity}", "{capacity} total capacity",
            "{free} is free", "{free} free", "{allowed} allowed",
            "{allocated} is allocated by PyTorch", "{allocated} already allocated",
            "with {private} allocated in private pools", "{unallocated} is reserved by PyTorch but unallocated",
            "{reserved} reserved in total by PyTorch", "{unallocated} cached",
        ), finish=_with_sums,
        reason=(
            "PyTorch may use {allowed} of the device, the limit of set_per_process_memory_fraction, and would have "
            "{over} more.",
            "Drivers of Intel GPUs allow {single} in one allocation, such as on an Arc A770; the memory in use does "
            "not explain the failure.",
            "This one allocation is larger than the {driver} that the driver offers.",
        ), advice=(
            "Raise the limit of torch.cuda.memory.set_per_process_memory_fraction: {allowed} lacks {over}.",
            "Split the tensor into parts below {single}, or use a newer driver and PyTorch, and "
            "UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1.",
            "On an APU, the driver offers {driver} of the machine's memory: give the GPU more in the firmware (UMA "
            "frame buffer) or with the kernel's parameter ttm.pages_limit. Otherwise split the tensor.",
        ),
    ),
    MessageKind(
        r"(?P<device>[A-Z]{2,8}) out of memory\. Tried to allocate more than 1EB memory",
        "NPU out of memory. Tried to allocate more than 1EB memory", {"memory": "NPU"}, "torch", "{device}",
        "https://github.com/flashserve/flash-linear-attention-npu/issues/149",
        request=("PyTorch was asked for more than an exbibyte.",),
        reason=("That is no shortage: a shape is wrong, such as a negative or corrupted number.",),
        advice=("Print the shapes where the stack ends. Where numbers come from the device, look for an earlier kernel "
                "that wrote out of bounds (CUDA_LAUNCH_BLOCKING=1, compute-sanitizer).",),
    ),
    MessageKind(
        r"MPS backend out of memory \(MPS allocated: {allocated}, other allocations: {others}, max allowed: {capacity}"
        r"\)\. Tried to allocate {asked}",
        "MPS backend out of memory (MPS allocated: 9.57 GiB, other allocations: 17.35 GiB, max allowed: 27.20 GiB). "
        "Tried to allocate 292.50 MiB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit "
        "for memory allocations (may cause system failure).",
        {"memory": "MPS", "asked": 306_708_480, "capacity": 29_205_777_613, "in_use": 28_905_129_902},
        "torch", "MPS", "https://github.com/Comfy-Org/ComfyUI/issues/7440", finish=_of_metal,
    ),
    MessageKind(
        r"Allocation on device (?P<number>\d{1,3}) would exceed allowed memory\.",
        "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently "
        "allocated     : 9.43 GiB\nRequested               : 640.00 MiB\nDevice limit            : 11.59 GiB\nFree "
        "(according to CUDA): 7.12 MiB\nPyTorch limit (set by user-supplied memory fraction)\n"
        "                        : 17179869184.00 GiB",
        {"memory": "cuda:0", "asked": 640 * MIB, "free": 7_465_861, "capacity": 12_444_667_740},
        "torch", "cuda:{number}", facts=(
            "Requested : {asked}", "Device limit : {capacity}", r"Free \(according to CUDA\): {free}",
        ),
    ),
    MessageKind(
        r"can NOT allocate memory block with size larger than {limit}! Tried to allocate {asked} \(GPU "
        r"(?P<number>\d{1,3}); {capacity} total capacity",
        "RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! Tried to allocate "
        "6.25 GiB (GPU  0; 15.11 GiB total capacity; 4.22 GiB already allocated; 4.43 GiB reserved in total by "
        "PyTorch)",
        {"memory": "xpu:0", "asked": 6_710_886_400, "capacity": 16_224_238_961},
        "torch", "xpu:{number}",
        reason=("The driver allows {limit} in one allocation; the memory in use does not matter.",),
        advice=("Split the tensor or use a smaller batch. Newer drivers have larger allocations: set "
                "UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1.",),
    ),
    MessageKind(
        r"(?:(?:CUDA|HIP|XPU|NPU|MUSA|MLU|HPU|MPS) (?:backend )?out of memory|"
        r"This error means you ran out of memory on your GPU)", "RuntimeError: CUDA out of memory.",
        {"memory": "GPU"}, "torch", "GPU", vague=True,
    ),
    MessageKind(
        r"(?m)(?:^|Exception Type:\W{1,6})(?:\w{1,40}: )?torch\.(?:cuda\.)?OutOfMemoryError(?:: \S|$)",
        "- **Exception Type:** torch.OutOfMemoryError\n- **Exception Message:** Allocation on device",
        {"memory": "GPU"}, "torch", "GPU", vague=True, exact=True,
    ),
)  # fmt: skip
