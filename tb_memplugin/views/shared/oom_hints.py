"""Hints for an out-of-memory failure: what to change, by the cause of the failure and the kind of memory."""

from __future__ import annotations

from tb_memplugin.analysis.oom import Cause, cause, missing_bytes
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.shared.kernel_hints import kernel_hints
from tb_memplugin.views.shared.oom_symptoms import SYMPTOMS, is_torch, memory_name

MAX_HINTS = 4
MIN_SHARE = 0.05  # of the memory in use; a smaller symptom is not worth a sentence
ON_CHIP = ("VMEM", "SMEM", "GPU shared memory")


def hints(recording: Recording, failure: OutOfMemory) -> list[str]:
    """Return sentences that say what to do, the largest saving first."""
    why = cause(failure)
    if why is Cause.HOST:
        return [
            "Give the job more host memory, or use less of it: smaller batches and fewer workers in the input "
            "pipeline, no copy of the weights on the host, checkpoints written in parts."
        ]
    if why is Cause.FRAGMENTED:
        return [_defragment_hint(recording, failure)]
    if of_kernel := kernel_hints(recording.memory, failure):
        return of_kernel
    symptoms = sorted((found for find in SYMPTOMS for found in find(recording)), key=lambda found: -found[0])
    min_size = MIN_SHARE * max(peak(recording).bytes, 1)
    texts = [text for size, text in symptoms if size >= min_size][:MAX_HINTS]
    if why is Cause.TOO_LARGE and memory_name(recording) not in ON_CHIP:
        split = f"Split it: an allocation of {bytes_text(failure.asked)} never fits. Shard it, or use smaller batches."
        return [split, *texts]
    return [*_dump_hint(recording, failure), *(texts or [_general_hint(recording, failure)])]


DUMP_FLAGS = "XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'"


def _dump_hint(recording: Recording, failure: OutOfMemory) -> list[str]:
    """Return where the buffers are, for a compiler's message that lists none."""
    if not lacks_buffers(recording):
        return []
    return [
        f"The text lists no buffers. XLA writes them into a dump, also where it refuses the program: set "
        f"{DUMP_FLAGS}, or call capture.compile(lowered); then open {failure.program} in FOLDER."
    ]


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
    if is_torch(recording):
        return (
            f"Reduce the memory in use{by}: a smaller batch with gradient accumulation, torch.utils.checkpoint, bf16, "
            "or sharding (FSDP). torch.cuda.memory._dump_snapshot writes a file that shows every tensor."
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
    if is_torch(recording):
        return (
            f"To use the {free} that is free: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, allocate tensors "
            "of equal sizes, or call torch.cuda.empty_cache() before large allocations."
        )
    if memory_name(recording).endswith("bfc"):
        return (
            f"To use the {free} that is free: allocate large arrays first and keep them, or use the driver's allocator "
            "(TF_GPU_ALLOCATOR=cuda_malloc_async; in JAX, XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async)."
        )
    return f"To use the {free} that is free: allocate large arrays first, and delete arrays as soon as possible."
