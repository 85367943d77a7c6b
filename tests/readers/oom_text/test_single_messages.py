"""Out-of-memory errors of one or a few lines: every wording, with its numbers."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tb_memplugin.errors import InputError
from tb_memplugin.model.out_of_memory import OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.oom_text import read_oom_text

COMPILE = OutOfMemoryPhase.COMPILE

KIB, MIB, GIB = 2**10, 2**20, 2**30


class Said(NamedTuple):
    """Return the numbers of a failure, None where the text has none, and the bytes in use at that moment."""

    memory: str
    asked: int | None = None
    free: int | None = None
    largest_free: int | None = None
    capacity: int | None = None
    used: int = 0
    host: bool = False
    phase: OutOfMemoryPhase = OutOfMemoryPhase.RUN


LINES = {
    "a vmem limit": (
        "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem while allocating "
        "on stack for %gmm.1 = f32[16384,512]{1,0:T(8,128)} custom-call(%a).\n"
        "Scoped allocation with size 18.00M and limit 16.00M exceeded scoped vmem limit by 2.00M.",
        Said("VMEM", 18 * MIB, capacity=16 * MIB, used=18 * MIB, phase=COMPILE),
    ),
    "vmem of a whole program": (
        "Ran out of memory in memory space vmem. Used 65.50M of 64.00M vmem. Exceeded vmem capacity by 1.50M.",
        Said("VMEM", 68_681_728, capacity=64 * MIB, used=68_681_728, phase=COMPILE),
    ),
    "an estimate in powers of 1000": (
        "XLA:TPU compile permanent error. Ran out of memory in memory space vmem. "
        "Estimated 268.96MB exceeds 67.11MB vmem capacity.",
        Said("VMEM", 268_960_000, capacity=67_110_000, used=268_960_000, phase=COMPILE),
    ),
    "two kinds of cores": (
        "RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 34.50G, SparseCore Hbm usage 174.00G, "
        "exceeding available bytes: 95.50G",
        Said("HBM", 223_875_170_304, capacity=102_542_344_192, used=223_875_170_304, phase=COMPILE),
    ),
    "one allocation": (
        "Allocation (size=21474836480) would exceed memory (size=17179869184) :: #allocation14167 "
        "[shape = 'f32[320,4096,4096]{1,2,0:T(8,128)}', space=hbm, size = 0xffffffffffffffff, "
        "tag = 'output of fusion.30572.remat@{1}'] :: <no-hlo-instruction>",
        Said("HBM", 20 * GIB, capacity=16 * GIB, used=20 * GIB, phase=COMPILE),
    ),
    "temporaries": (
        "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (98.50G) "
        "exceeds available HBM (94.50G). HLO module: jit_step.",
        Said("HBM", 105_763_569_664, capacity=101_468_602_368, used=105_763_569_664, phase=COMPILE),
    ),
    "an early end": (
        "Aborting compilation early because it's unlikely to have enough memory. Requires 20.50G, "
        "has 15.50G available.",
        Said("HBM", 22_011_707_392, capacity=16_642_998_272, used=22_011_707_392, phase=COMPILE),
    ),
    "a TPU buffer": (
        "ValueError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 8.00M. "
        "That was not possible. There are 6.50M free.; (0x0x1_HBM0)",
        Said("HBM 0x0x1_HBM0", 8 * MIB, free=6_815_744),
    ),
    "a TPU buffer, fragmented": (
        "RESOURCE_EXHAUSTED: Attempting to allocate 31.00M. That was not possible. There are 58.50M free. "
        "Due to fragmentation, the largest contiguous region of free memory is 30.50M.; (0x0x0_HBM0)",
        Said("HBM 0x0x0_HBM0", 31 * MIB, free=61_341_696, largest_free=31_981_568),
    ),
    "a TPU buffer, fragmented, in the newer order": (
        "Attempting to allocate 31.00M. That was not possible. There are 58.50M free. "
        "The largest contiguous region of free memory is 30.50M due to fragmentation.",
        Said("HBM", 31 * MIB, free=61_341_696, largest_free=31_981_568),
    ),
    "a TPU program": (
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Error loading program 'jit_step': Attempting to reserve 29.50G at the "
        "bottom of memory. That was not possible. There are 147.50M free, 0B reserved, and 147.50M reservable. "
        "Scope: unknown..: while running replica 0 and partition 34 of a replicated computation (other replicas may "
        "have failed as well).",
        Said("HBM", 31_675_383_808, free=154_664_960, largest_free=154_664_960, phase=OutOfMemoryPhase.LOAD),
    ),
    "a GPU buffer": (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "6291456 bytes.",
        Said("device memory", 6 * MIB),
    ),
    "a GPU buffer, and whose": (
        "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.50GiB\nwith allocator GPU_0_bfc "
        "on device 0.\n[executable_name='jit_greater'] [tf-allocator-allocation-error='']",
        Said("GPU_0_bfc", 1_610_612_736),
    ),
    "a GPU buffer, as it was": (
        "RuntimeError: Resource exhausted: Failed to allocate request for 32.00MiB (33554432B) on device ordinal 0",
        Said("GPU 0", 32 * MIB),
    ),
    "too many arguments": (
        "E0207 18:44:44.481770 1957515 gpu_hlo_schedule.cc:815] The byte size of input/output arguments (40000000000) "
        "exceeds the base limit (27028357120). This indicates an error in the calculation!",
        Said("GPU", 40_000_000_000, capacity=27_028_357_120, used=40_000_000_000, phase=COMPILE),
    ),
    "shared memory": (
        "Shared memory size limit exceeded: requested 262144, available: 232448",
        Said("GPU shared memory", 262_144, capacity=232_448, used=262_144, phase=COMPILE),
    ),
    "shared memory, of Triton": (
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, "
        "Hardware limit: 101376. Reducing block sizes or `num_stages` may help.",
        Said("GPU shared memory", 131_072, capacity=101_376, used=131_072, phase=COMPILE),
    ),
    "rematerialization": (
        "W external/xla/xla/service/hlo_rematerialization.cc:2202] Can't reduce memory use below 23.81GiB "
        "(25567444992 bytes) by rematerialization; only reduced to 86.14GiB (92489619062 bytes), down from 95.71GiB "
        "(102770769072 bytes) originally",
        Said("device memory", 92_489_619_062, capacity=25_567_444_992, used=92_489_619_062, phase=COMPILE),
    ),
    "the driver": (
        "2024-01-01 00:00:00.000001: I external/xla/cuda_driver.cc:1101] failed to allocate 3.72G (4000000000 bytes) "
        "from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        Said("device memory", 4_000_000_000),
    ),
    "the driver's own pool": (
        "gpu_async_0 cuMemAllocAsync failed to allocate 1073741824 bytes: CUDA error: out of memory "
        "(CUDA_ERROR_OUT_OF_MEMORY)\n Reported by CUDA: Free memory/Total memory: 536870912/8589934592\n"
        "Stats: Limit:                      7516192768\nInUse:                      6442450944\n",
        Said("gpu_async_0", GIB, free=512 * MIB, capacity=8 * GIB, used=6 * GIB),
    ),
    "a tensor of TensorFlow": (
        "ResourceExhaustedError: OOM when allocating tensor with shape[256,1024,1024] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        Said("GPU_0_bfc", GIB),
    ),
    "PyTorch 1.0": (
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.75 GiB total capacity; "
        "6.25 GiB already allocated; 14.00 MiB free; 256.00 MiB cached)",
        # 256 MiB cached, more of it allocated: older than the word "reserved"; nothing is unallocated.
        Said("cuda:0", 20 * MIB, free=14 * MIB, capacity=8_321_499_136, used=8_306_819_072),
    ),
    "PyTorch 1.12": (
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 8.00 GiB total capacity; "
        "5.00 GiB already allocated; 512.00 MiB free; 7.00 GiB reserved in total by PyTorch) If reserved memory is "
        ">> allocated memory try setting max_split_size_mb to avoid fragmentation.",
        Said("cuda:1", 2 * GIB, free=2560 * MIB, capacity=8 * GIB, used=5632 * MIB),
    ),
    "PyTorch 2": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of "
        "32.00 GiB of which 512.00 MiB is free. Process 19239 has 14.00 GiB memory in use. Including non-PyTorch "
        "memory, this process has 17.50 GiB memory in use. Of the allocated memory 15.00 GiB is allocated by PyTorch, "
        "with 1.00 GiB allocated in private pools (e.g., CUDA Graphs), and 1.00 GiB is reserved by PyTorch but "
        "unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        Said("cuda:0", 3 * GIB, free=1536 * MIB, capacity=32 * GIB, used=31_232 * MIB),
    ),
    "PyTorch 2.1, with its misspelling and a limit": (
        "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 8.00 GiB. GPU 3 has a total capacty of "
        "64.00 GiB of which 7.00 GiB is free. 48.00 GiB allowed; Of the allocated memory 40.00 GiB is allocated by "
        "PyTorch, and 8.00 MiB is reserved by PyTorch but unallocated.",
        Said("hip:3", 8 * GIB, free=7_176 * MIB, capacity=64 * GIB, used=58_360 * MIB),
    ),
    "PyTorch on a Mac": (
        "RuntimeError: MPS backend out of memory (MPS allocated: 17.50 GB, other allocations: 512.00 MB, max allowed: "
        "18.13 GB). Tried to allocate 256.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable "
        "upper limit for memory allocations (may cause system failure).",
        # This tool's GB are 1024**3: 18.13 GB are 19466939269.12 bytes.
        Said("MPS", 256 * MIB, free=139_586_437, capacity=19_466_939_269, used=18 * GIB),
    ),
    "PyTorch without numbers": (
        "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        Said("GPU"),
    ),
    "an arena of ONNX Runtime": (
        "/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:368 void* onnxruntime::BFCArena::AllocateRawInternal"
        "(size_t, bool) Failed to allocate memory for requested buffer of size 2830172160",
        Said("ONNX Runtime arena", 2_830_172_160),
    ),
    "jaxlib on a CPU": (  # a real text of jaxlib 0.12
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 281474976710656 bytes.",
        Said("host memory", 2**48, host=True),
    ),
    "pinned memory": (
        "Out of host memory while trying to allocate 70.00GiB. Please set the environment variable "
        "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB to allocate larger host memory than the default 64 GB.",
        Said("host memory", 70 * GIB, host=True),
    ),
    "PyTorch on a CPU": (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 80000000000 bytes. Error code 12 (Cannot allocate memory)",
        Said("host memory", 80_000_000_000, host=True),
    ),
    "NumPy": (
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array with shape "
        "(100000, 100000) and data type float64",
        Said("host memory", 79_993_765_888, host=True),
    ),
    "exit code 137": ("command terminated with exit code 137", Said("host memory", host=True)),
    "exit status 137": ("make: *** [train] Error: Process exited with status 137.", Said("host memory", host=True)),
    "a pod": ("    Last State:  Terminated\n      Reason:    OOMKilled\n", Said("host memory", host=True)),
    "torchrun": (
        "  exitcode  : -9 (pid: 4711)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 4711",
        Said("host memory", host=True),
    ),
    "the shell": ("step 12 loss 3.1\nKilled\n", Said("host memory", host=True)),
    "the kernel": (
        "[1234.5] Out of memory: Killed process 4711 (python3) total-vm:90000000kB, anon-rss:62914560kB, "
        "file-rss:0kB, shmem-rss:0kB, UID:1000",
        Said("host memory", used=60 * GIB, host=True),
    ),
}  # fmt: skip


def only(text: str) -> Recording:
    (recording,) = read_oom_text(text.encode())
    return recording


@pytest.mark.parametrize(("text", "said"), LINES.values(), ids=LINES.keys())
def test_the_numbers_of_each_wording(text: str, said: Said) -> None:
    recording = only(text)
    failure = recording.out_of_memory
    assert failure is not None and recording.reported is not None
    used = int(recording.reported.in_use[0])
    found = Said(
        recording.memory, failure.asked, failure.free, failure.largest_free, failure.capacity, used,
        failure.host, failure.phase,
    )  # fmt: skip
    assert found == said
    assert recording.capacity == said.capacity


def test_what_pytorch_keeps_and_may_use_is_told() -> None:
    text, _ = LINES["PyTorch 2.1, with its misspelling and a limit"]
    told = {caveat.code: caveat.bytes for caveat in only(text).caveats}
    # Of 64 GiB, 7 GiB and 8 MiB are free; this process's tensors take 40 GiB of the rest.
    assert told == {"not_listed": 58_360 * MIB - 40 * GIB, "reserved_unallocated": 8 * MIB, "limited": 48 * GIB}


@pytest.mark.parametrize(("text", "said"), LINES.values(), ids=LINES.keys())
def test_whatever_a_log_puts_around_a_line(text: str, said: Said) -> None:
    """Put a cluster's prefix, colors and a quotation mark before each line, and use other line ends."""
    dressed = "\r\n".join(f"> \x1b[36m(Worker pid=489, ip=10.0.0.7)\x1b[0m {line}" for line in text.splitlines())
    assert only(dressed).out_of_memory == only(text).out_of_memory


@pytest.mark.parametrize("prefix", [
    "2025-01-05 09:48:28.755003: W external/xla/xla/tsl/framework/bfc_allocator.cc:1126] ",
    "E0314 21:29:02.854727  957629 pjrt_stream_executor_client.cc:3045] ",
    "E0000 00:00:1795230962.176798    6890 bfc_allocator.cc:1049] ",
    "(EngineCore pid=489) ERROR 09-01 12:00:00 [core.py:700] ",
    "[36m(MeshHostWorker pid=489)[0m ",
    "2024-05-01T10:00:00.123456789Z stderr F ",
    "[rank3]: ",
    "12: ",
    r"2017-10-11 11:19:34.115808: I C:\tf_jenkins\home\workspace\bfc_allocator.cc:643] ",
])  # fmt: skip
def test_each_prefix_is_stripped(prefix: str) -> None:
    """Keep anchored patterns anchored: they match at the start of a line without its prefix."""
    text = "Ran out of memory in memory space hbm. Used 2.00G of 1.00G hbm.\nTotal hbm usage >= 2.00G:\narguments 1.00G"
    assert len(only("\n".join(prefix + line for line in text.splitlines())).allocations) == 1


def test_an_error_on_one_line_with_escapes() -> None:
    text = "FAILED: 'Ran out of memory in memory space hbm. Used 2.00G of 1.00G hbm.\\n\\nTotal hbm usage >= 2.00G:\\n"
    assert len(only(text + "    arguments       1.00G\\n'").allocations) == 1


@pytest.mark.parametrize("text", ["", "\n\n", "step 1 loss 2.0", "memory is fine", "exit code 1370", "exit code 13"])
def test_a_text_without_an_error_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="No out-of-memory error in the text"):
        read_oom_text(text.encode())


def test_an_attempt_that_may_fail_is_no_error() -> None:
    text = (
        "bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.37GiB with "
        "freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be "
        "performance gains if more memory were available."
    )
    with pytest.raises(InputError):
        read_oom_text(text.encode())
