"""Out-of-memory errors of one or a few lines: every wording, with its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tb_memplugin.errors import InputError
from tb_memplugin.model.out_of_memory import OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.oom_text import read_oom_text
from tb_memplugin.readers.oom_text.message import FIGURES, MessageKind
from tb_memplugin.readers.oom_text.messages import MESSAGES

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
    "a TPU buffer": (
        "ValueError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 8.00M. "
        "That was not possible. There are 6.50M free.; (0x0x1_HBM0)",
        Said("HBM 0x0x1_HBM0", 8 * MIB, free=6_815_744),
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
    "the driver's own pool": (
        "gpu_async_0 cuMemAllocAsync failed to allocate 1073741824 bytes: CUDA error: out of memory "
        "(CUDA_ERROR_OUT_OF_MEMORY)\n Reported by CUDA: Free memory/Total memory: 536870912/8589934592\n"
        "Stats: Limit:                      7516192768\nInUse:                      6442450944\n",
        Said("gpu_async_0", GIB, free=512 * MIB, capacity=8 * GIB, used=6 * GIB),
    ),
    "PyTorch 1.0": (
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.75 GiB total capacity; "
        "6.25 GiB already allocated; 14.00 MiB free; 256.00 MiB cached)",
        # Before the word "reserved", what is cached is not allocated (CUDACachingAllocator.cpp of PyTorch 1.3).
        Said("cuda:0", 20 * MIB, free=270 * MIB, capacity=8_321_499_136, used=8_038_383_616),
    ),
    "PyTorch 1.12": (
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 8.00 GiB total capacity; "
        "5.00 GiB already allocated; 512.00 MiB free; 7.00 GiB reserved in total by PyTorch) If reserved memory is "
        ">> allocated memory try setting max_split_size_mb to avoid fragmentation.",
        Said("cuda:1", 2 * GIB, free=2560 * MIB, capacity=8 * GIB, used=5632 * MIB),
    ),
    "PyTorch 2.1, with its misspelling and a limit": (
        "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 8.00 GiB. GPU 3 has a total capacty of "
        "64.00 GiB of which 7.00 GiB is free. 48.00 GiB allowed; Of the allocated memory 40.00 GiB is allocated by "
        "PyTorch, and 8.00 MiB is reserved by PyTorch but unallocated.",
        Said("hip:3", 8 * GIB, free=7_176 * MIB, capacity=64 * GIB, used=58_360 * MIB),
    ),
    "PyTorch with more than the device has, on Windows": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 MiB. GPU 0 has a total capacity of "
        "11.00 GiB of which 0 bytes is free. Of the allocated memory 17.00 GiB is allocated by PyTorch, and "
        "696.75 MiB is reserved by PyTorch but unallocated.",
        Said("cuda:0", 30 * MIB, free=0, capacity=11 * GIB, used=17 * GIB),
    ),
    "exit status 137": ("make: *** [train] Error: Process exited with status 137.", Said("host memory", host=True)),
}  # fmt: skip


def only(text: str) -> Recording:
    (recording,) = read_oom_text(text.encode())
    return recording


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.example[:40])
def test_each_kind_of_message_reads_its_example(kind: MessageKind) -> None:
    recording = only(kind.example)
    found = {"memory": recording.memory, "program": recording.title.removeprefix("OOM in ").partition(":")[0]}
    assert {name: found.get(name) or getattr(recording.out_of_memory, name) for name in kind.reads} == kind.reads


def narrow(text: str) -> str:
    """Break each line in every 31st place, as a narrow terminal or a screenshot does, also inside words and numbers."""
    return "\n".join(line[at : at + 31] for line in text.split("\n") for at in range(0, len(line), 31))


def quoted(text: str) -> str:
    return "> " + text.replace("\n", "\n> ").replace(" ", "  ")


@pytest.mark.parametrize("kind", [kind for kind in MESSAGES if not kind.exact], ids=lambda kind: kind.example[:40])
@pytest.mark.parametrize("paste", [narrow, quoted])
def test_figures_are_read_wherever_a_paste_breaks_the_text(kind: MessageKind, paste: Callable[[str], str]) -> None:
    failure = only(paste(kind.example)).out_of_memory
    assert failure is not None
    figures = {name: size for name, size in kind.reads.items() if name in FIGURES}
    assert {name: getattr(failure, name) for name in figures} == figures


@pytest.mark.parametrize("line", [
    "CUDA out of memory . Tried to allocate 1 . 50 GiB ( GPU 0 ; 23 . 50 GiB total capacity ; 1 . 00 GiB free )",
    "12 CUDA out of memory. Tried to\n13 allocate 1.50 GiB. GPU 0 has a total capacity of\n14 23.50 GiB of which "
    "1.00 GiB is\n15 free.",
    "(Worker pid=3) CUDA out of memory. Tried to allocate 1.5\n0 GiB. GPU 0 has a total capacity of 23.50 GiB of which "
    "1.00 Gi\nB is free.",
    "CUDA out of memory. Tried to allocate 1.50 GiB ... total capacity of 23.50 GiB ... 1.00 GiB is free.",
])  # fmt: skip
def test_a_screenshot_numbered_lines_a_narrow_terminal_and_an_elided_text(line: str) -> None:
    failure = only(line).out_of_memory
    assert failure is not None
    assert (failure.asked, failure.capacity, failure.free) == (1536 * MIB, 24_064 * MIB, GIB)


@pytest.mark.parametrize(("text", "asked", "room"), [
    ("Ran out of memory in memory space hbm ... Used 3.00G of 2.00G hbm ... Exceeded hbm capacity by 1.00G", 3, 2),
    ("Attempting to reserve 3.00G at the bottom of memory. That was not possible. ... There are 2.00G free", 3, 2),
    ("3.00 GiB KV cache is needed ... available KV cache memory\n(2.00 GiB)", 3, 2),
    ("Free memory on device (2.00/4.00 GiB) ... is less than desired GPU memory utilization (0.75, 3.00 GiB)", 3, 2),
])  # fmt: skip
def test_figures_are_read_across_what_an_author_leaves_out(text: str, asked: int, room: int) -> None:
    failure = only(text).out_of_memory
    assert failure is not None and failure.asked == asked * GIB and room * GIB in (failure.free, failure.capacity)


def test_a_sentence_has_sizes_below_a_kibibyte() -> None:
    assert "608 B" in str(only("NCCL WARN Failed to CUDA calloc async 608 bytes").out_of_memory)


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
