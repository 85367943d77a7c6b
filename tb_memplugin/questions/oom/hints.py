"""Hints for an out-of-memory failure: what to change, by the cause of the failure and the kind of memory."""

from __future__ import annotations

import re

from tb_memplugin.analysis.usage.headroom import Cause, cause, missing_bytes
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.accelerators import TPU7X, V4, V5E, V5P, V6E
from tb_memplugin.model.out_of_memory import DUMP_FLAGS, KernelBuffer, OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.oom.symptoms import SYMPTOMS, memory_name, torch_device
from tb_memplugin.sizes import bytes_text

CHIPS = (V4, V5E, V5P, V6E, TPU7X)
# libtpu 0.0.52 allows a kernel this many bytes on a TPU v5e, without an option that says otherwise.
DEFAULT_VMEM_LIMIT = 16 << 20
SEMAPHORE_BYTES = 4
MIN_ROWS = 8  # rows of an f32 tile: a smaller block is padded to a tile
BLOCK = re.compile(r"(\w{1,10})\[(\d{1,18}(?:,\d{1,18}){0,30})\]")


def kernel_hints(memory: str, failure: OutOfMemory) -> list[str]:
    """Return what to change in a kernel, the easiest change first; empty for other memories."""
    if failure.asked is None or failure.capacity is None or failure.asked <= failure.capacity:
        return []
    match memory.partition(" ")[0].upper():
        case "VMEM" if failure.kernel_limit:
            return _raise_limit(failure.asked, failure.capacity)
        case "VMEM" if failure.kernel_buffers:
            return _shrink_blocks(failure.kernel_buffers, failure.asked, failure.capacity)
        case "SMEM":
            return [
                f"Keep only scalars in SMEM, of which the kernel has {bytes_text(failure.capacity)}: leave the array "
                "in HBM (pl.BlockSpec(memory_space=pl.ANY)) and copy parts of it with pltpu.async_copy, or give it a "
                "block in VMEM."
            ]
        case "SFLAG":
            return [
                f"Use at most {failure.capacity // SEMAPHORE_BYTES:,} semaphores; the kernel has "
                f"{failure.asked // SEMAPHORE_BYTES:,}. Wait for a copy before the next one, and reuse its semaphore."
            ]
    return []


def _raise_limit(asked: int, limit: int) -> list[str]:
    chips = [chip.name for chip in CHIPS if chip.vmem is not None and chip.vmem > asked]
    smaller = f"Use blocks {_factor(asked, limit)} times smaller: the limit of the kernel is {bytes_text(limit)}."
    if not chips:
        return [f"{smaller} No TPU has {bytes_text(asked)} of VMEM."]
    option = _option(asked)
    has = "has" if len(chips) == 1 else "have"
    return [f"Raise the limit of the kernel: {option}. {', '.join(chips)} {has} more VMEM than that.", smaller]


def _shrink_blocks(buffers: tuple[KernelBuffer, ...], asked: int, capacity: int) -> list[str]:
    # The compiler needs some of the memory itself: 64 KiB on a TPU v5p. A compiler that lists one window stopped at the
    # first that did not fit, and a second one of its size needs room too.
    windows = [buffer for buffer in buffers if buffer.full_shape]
    factor = _factor(asked, (capacity if len(windows) > 1 else capacity // 2) - 1)
    if not windows:
        return [f"Use scratch memory at least {factor} times smaller: the chip has {bytes_text(capacity)} of VMEM."]
    largest = max(windows, key=lambda window: window.bytes)
    block = _smaller_block(largest.shape, factor)
    size = sum(window.bytes for window in windows) // factor
    text = f"Use blocks {factor} times smaller"
    if block:
        text += f", such as {block} for {largest.operand} in place of {largest.shape}"
    listed = "the windows then take" if len(windows) > 1 else "this window then takes"
    hints = [f"{text}: {listed} {bytes_text(size)} of {bytes_text(capacity)}."]
    if (needed := size if len(windows) > 1 else 2 * size) > DEFAULT_VMEM_LIMIT:
        hints[0] += f" Windows of more than {bytes_text(DEFAULT_VMEM_LIMIT)} in all also need {_option(needed)}."
    if largest.buffers > 1:
        single = "pl.BlockSpec(..., pipeline_mode=pl.Buffered(1))"
        hints.append(f"An operand that is the same in every step of the grid needs one buffer, not two: {single}.")
    return hints


def _option(size: int) -> str:
    return f"pl.pallas_call(..., compiler_params=pltpu.CompilerParams(vmem_limit_bytes={-(-size // 2**20)} * 2**20))"


def _factor(asked: int, goal: int) -> int:
    """Return the least power of two by which `asked` must be divided to be at most `goal`."""
    return 1 << max((-(-asked // max(goal, 1)) - 1).bit_length(), 0)


def _smaller_block(shape: str, factor: int) -> str:
    """Return a block with its second last or an earlier dimension divided; empty where none divides evenly."""
    found = BLOCK.match(shape)
    dimensions = [int(text) for text in found[2].split(",")] if found else []
    for number, dimension in enumerate(dimensions[:-1]):
        least = MIN_ROWS if number == len(dimensions) - 2 else 1
        if dimension % factor == 0 and dimension // factor >= least:
            dimensions[number] //= factor
            return f"{found[1] if found else ''}[{','.join(map(str, dimensions))}]"
    return ""


TORCH_SNAPSHOT = " torch.cuda.memory._dump_snapshot writes a file that shows every tensor."
MAX_HINTS = 4
MAX_RATIO = 8  # a choice: a symptom that concerns less than this part of the largest one's bytes gets no sentence
MIN_SHARE = 0.05  # a choice: a symptom with a smaller share of the memory in use gets no sentence
ON_CHIP = ("VMEM", "SMEM", "GPU shared memory")


def hints(recording: Recording, failure: OutOfMemory) -> list[str]:
    """Return sentences that say what to do, the largest saving first."""
    if failure.advice:
        return list(failure.advice)
    why = cause(failure)
    if why is Cause.HOST:
        return [
            "Give the job more host memory, or use less of it: smaller batches and fewer workers in the input "
            "pipeline, no copy of the weights on the host, checkpoints written in parts."
        ]
    if why is Cause.UNEXPLAINED:
        return [
            "Look for a limit of one allocation, of the process (ulimit -v, a container, MIG) or of the driver, for "
            "another device than the one that is meant, and for the first error of the run: later ones may follow."
        ]
    if why is Cause.FRAGMENTED:
        return [_defragment_hint(recording, failure)]
    if of_kernel := kernel_hints(recording.memory, failure):
        return of_kernel
    symptoms = sorted((found for find in SYMPTOMS for found in find(recording)), key=lambda found: -found[0])
    min_size = max(MIN_SHARE * max(peak(recording).bytes, 1), symptoms[0][0] / MAX_RATIO if symptoms else 0)
    texts = [text for size, text in symptoms if size >= min_size][:MAX_HINTS]
    if why is Cause.TOO_LARGE and memory_name(recording) not in ON_CHIP:
        split = f"Split it: an allocation of {bytes_text(failure.asked)} never fits. Shard it, or use smaller batches."
        return [split, *texts]
    dump = (
        f"The text lists no buffers. XLA writes them into a dump, also where it refuses the program: set "
        f"{DUMP_FLAGS}, or call capture.compile(lowered); then open {failure.program} in FOLDER."
    )
    return [*([dump] if lacks_buffers(recording) else []), *(texts or [_general_hint(recording, failure)])]


def lacks_buffers(recording: Recording) -> bool:
    """Return whether the recording is of a compiler's message that names a program, without its buffers."""
    failure = recording.out_of_memory
    compiling = failure is not None and failure.phase is OutOfMemoryPhase.COMPILE and bool(failure.program)
    return compiling and not len(recording.allocations)


def _general_hint(recording: Recording, failure: OutOfMemory) -> str:
    goal = missing_bytes(failure)
    by = f" by {bytes_text(goal)}" if goal else ""
    if failure.phase is OutOfMemoryPhase.LOAD:
        return f"Free arrays before the program is loaded, or make the program smaller{by}: it needs one free block."
    if memory_name(recording) in ON_CHIP:
        return f"Reduce the memory that the kernel uses{by}: smaller blocks, fewer pipeline stages, or bf16."
    if torch_device(recording):
        return (
            f"Reduce the memory in use{by}: a smaller batch with gradient accumulation, torch.utils.checkpoint, bf16, "
            f"or sharding (FSDP).{TORCH_SNAPSHOT if torch_device(recording) in ('cuda', 'hip') else ''}"
        )
    if recording.memory.startswith("ONNX"):
        return f"Reduce the memory in use{by}: a smaller batch. Or enlarge the arena (gpu_mem_limit, max_mem)."
    if "a tensor of shape" in failure.wanted_by:  # the wording of TensorFlow
        return (
            f"Reduce the memory in use{by}: a smaller batch, tf.recompute_grad, mixed precision, or more devices "
            "(tf.distribute). A profile of a smaller run shows the largest tensors."
        )
    return (
        f"Reduce the memory in use{by}: a smaller batch, donated arguments, rematerialization (jax.checkpoint), bf16, "
        "or sharding over more devices. A profile of a smaller run shows the largest buffers."
    )


def _defragment_hint(recording: Recording, failure: OutOfMemory) -> str:
    free = bytes_text(failure.free)
    if (device := torch_device(recording)) == "mps":
        return f"To use the {free} that is free: call torch.mps.empty_cache() before large allocations."
    if device:
        module = "cuda" if device == "hip" else device
        option = f"PYTORCH_{device.upper()}_ALLOC_CONF" if device in ("cuda", "hip", "npu") else "PYTORCH_ALLOC_CONF"
        return (
            f"To use the {free} that is free: set {option}=expandable_segments:True, allocate tensors of equal sizes, "
            f"or call torch.{module}.empty_cache() before large allocations."
        )
    if memory_name(recording).endswith("bfc"):
        return (
            f"To use the {free} that is free: allocate large arrays first and keep them, or use the driver's allocator "
            "(TF_GPU_ALLOCATOR=cuda_malloc_async; in JAX, XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async)."
        )
    return f"To use the {free} that is free: allocate large arrays first, and delete arrays as soon as possible."
