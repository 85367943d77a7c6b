"""Out-of-memory failures in words: the cause from its figures, and sentences with figures computed here."""

from __future__ import annotations

import pytest
from support.servers import TESTS

from tb_memplugin.analysis.usage.headroom import Cause, cause, headroom, missing_bytes, required_bytes, shortfall
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.oom.failure import figures, sentences
from tb_memplugin.questions.run.overview import overview
from tb_memplugin.readers.oom_text import read_oom_text

COMPILE = OutOfMemoryPhase.COMPILE

TEXTS = TESTS / "data" / "oom_texts"


@pytest.mark.parametrize(
    ("failure", "why", "more"),
    [
        (OutOfMemory(asked=10, free=4, capacity=100), Cause.LIVE, 6),
        (OutOfMemory(asked=10, free=4), Cause.LIVE, 6),
        (OutOfMemory(asked=10, free=20, largest_free=9, capacity=100), Cause.FRAGMENTED, 0),
        (OutOfMemory(asked=10, free=20), Cause.FRAGMENTED, 0),
        (OutOfMemory(asked=10, free=20, largest_free=10), Cause.UNEXPLAINED, 0),
        (OutOfMemory(asked=10, free=1000), Cause.UNEXPLAINED, 0),
        (OutOfMemory(asked=101, free=20, capacity=100), Cause.TOO_LARGE, 81),
        (OutOfMemory(asked=10), Cause.UNKNOWN, None),
        (OutOfMemory(free=10), Cause.UNKNOWN, None),
        (OutOfMemory(asked=10, host=True), Cause.HOST, None),
        (OutOfMemory(asked=110, capacity=100, phase=COMPILE), Cause.LIVE, 10),
        (OutOfMemory(asked=110, capacity=100, phase=COMPILE, wanted_by="copy.1"), Cause.TOO_LARGE, 10),
        (OutOfMemory(asked=90, phase=COMPILE), Cause.LIVE, None),
        (OutOfMemory(asked=1734, capacity=1551, exceeded=184, phase=COMPILE), Cause.LIVE, 184),  # as the text rounds
        (OutOfMemory(asked=1734, capacity=1551, exceeded=900, phase=COMPILE), Cause.LIVE, 183),
    ],
)  # fmt: skip
def test_the_reason_follows_from_the_numbers(failure: OutOfMemory, why: Cause, more: int | None) -> None:
    assert cause(failure) == why
    assert missing_bytes(failure) == more


def test_an_excess_is_the_one_that_the_log_prints_in_every_place() -> None:
    """Each figure of the log is rounded: 17.34 - 15.51 is 1.83."""
    log = "Ran out of memory in memory space hbm. Used 17.34G of 15.51G hbm. Exceeded hbm capacity by 1.84G.\n"
    found = of(log)
    excess = int(1.84 * 2**30)
    assert sentences(found)[1] == "That is 1.84 GiB too much."
    assert missing_bytes(found.out_of_memory or OutOfMemory()) == excess
    assert headroom(found).left == -excess
    assert [figure.bytes for figure in figures(found) if figure.key == "missing"] == [excess]
    assert "1.84 GiB" in overview([found])["headline"]


@pytest.mark.parametrize(
    ("failure", "bytes_short"),
    [
        (OutOfMemory(asked=32, free=9, largest_free=4, capacity=64), 23),  # as the headline says
        (OutOfMemory(asked=10, free=28, largest_free=4), 6),  # fragmented: a block of 6 more would do
        (OutOfMemory(asked=10, in_use=95, capacity=100), 5),
        (OutOfMemory(asked=10), None),
    ],
)
def test_the_headroom_is_what_the_sentences_miss(failure: OutOfMemory, bytes_short: int | None) -> None:
    assert shortfall(failure) == bytes_short


def of(text: str) -> Recording:
    return read_oom_text(text.encode())[0]


def file(name: str) -> Recording:
    return of((TEXTS / name).read_text())


def test_a_compiled_program_and_its_tell_tales() -> None:
    """Use 12 GiB of the backward pass, 8 GiB in one buffer, half of 9 GiB of f32, half of 4 GiB of arguments."""
    said = sentences(file("tpu_compile.txt"))
    assert [sentence.split(" ", 2)[0:2] for sentence in said] == [
        ["The", "program"], ["That", "is"], ["12.0", "GiB"], ["One", "buffer,"], ["9.00", "GiB"], ["4.00", "GiB"],
    ]  # fmt: skip
    assert "8.00 GiB, 51% of the memory" in said[3]  # of 15.75 GiB


def test_padding_is_told_where_a_sharding_would_not_help() -> None:
    """Use a 12 GiB buffer with 960 MiB of data: it is not the oversized buffer that it appears to be."""
    assert sentences(file("tpu_compile_old.txt"))[2:] == [
        "11.1 GiB is padding: model/one_hot s32[25165824,10]{1,0:T(8,128)} has 960 MiB of data in 12.0 GiB. Make its "
        "minor dimension a multiple of 128 and the next one a multiple of 8, or make a large dimension the minor one."
    ]


def test_fragmentation() -> None:
    assert sentences(file("bfc_old.txt"))[:2] == [
        "An allocation of 3.00 KiB in GPU_0_bfc failed; 3.00 KiB of 5.00 KiB was free, "
        "the largest free block 2.00 KiB.",
        "Enough memory is free in total, but not in one block: the free memory is fragmented.",
    ]
    assert {figure.key: figure.bytes for figure in figures(file("bfc_old.txt"))} == {
        "live_peak": 2048, "capacity": 5120, "asked": 3072, "free": 3072, "largest_free": 2048,
        "fragmented": 1024, "listed": 2048, "reported_peak": 4096,
    }  # fmt: skip


def test_fragmentation_of_a_real_allocator() -> None:
    """Return six chunks of 4 MiB and one of 12 MiB in use; the 28 MiB free have no adjacent chunks."""
    said = sentences(file("bfc_fragmented.txt"))
    assert said[0] == (
        "An allocation of 10.0 MiB in bfc_cpu_allocator_for_gpu for AddV2, a tensor of shape [2560,1024] and type "
        "float failed; 28.0 MiB of 64.0 MiB was free, the largest free block 4.00 MiB."
    )
    assert said[1] == "Enough memory is free in total, but not in one block: the free memory is fragmented."


def test_another_process_on_the_device() -> None:
    said = sentences(
        of(
            "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 32.00 GiB of which 512.00 "
            "MiB is free. Process 19239 has 14.00 GiB memory in use. Of the allocated memory 15.00 GiB is allocated by "
            "PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
        )
    )
    assert said[1:] == [
        "Too much memory is in use: 1.50 GiB more must be free.",
        "14.0 GiB is used by process 19239: end it if it is an old run, or use another device.",
    ]


def test_in_a_container_the_process_that_is_listed_may_be_this_one() -> None:
    """Return 9 GiB of tensors and 1 GiB cached, in a process of 11 GiB; 11 of 12 GiB are in use: no room for two."""
    recording = of(
        "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 12.00 GiB of which 1.00 GiB is "
        "free. Process 77 has 11.00 GiB memory in use. Of the allocated memory 9.00 GiB is allocated by PyTorch, and "
        "1.00 GiB is reserved by PyTorch but unallocated."
    )
    rows = recording.allocations
    assert {rows.name[k]: int(rows.size[k]) for k in range(len(rows.size))} == {
        "allocated by PyTorch": 9 << 30,
        "this process (77) beyond PyTorch": 1 << 30,
    }
    assert sentences(recording)[1:2] == ["Too much memory is in use: 1.00 GiB more must be free."]
    assert not any("end it" in line for line in sentences(recording))


def test_exit_code_137_is_host_memory() -> None:
    said = " ".join(sentences(of("command terminated with exit code 137")))
    assert "host memory" in said and "signal 9 (128 + 9)" in said and "is not involved" in said
    assert "jax.checkpoint" not in said and "donate" not in said


def test_what_is_not_known_is_said() -> None:
    said = sentences(of("Out of memory while trying to allocate 1048576 bytes."))
    assert said[0] == "An allocation of 1.00 MiB in device memory failed."
    assert "has too few figures to identify the cause" in said[1]


@pytest.mark.parametrize(
    ("text", "bytes"),
    [
        ("Attempting to allocate 3.00G. That was not possible. There are 1.00G free.", 3 * 2**30),
        ("Ran out of memory in memory space hbm. Used 3.00G of 2.00G hbm.", 3 * 2**30),
        ("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB "
         "is free. Of the allocated memory 6.00 GiB is allocated by PyTorch.", 9 * 2**30),
        ("exit code 137", 0),
    ],
)  # fmt: skip
def test_what_would_have_had_to_fit(text: str, bytes: int) -> None:
    assert required_bytes(of(text)) == bytes


TORCH = (
    "{device} out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of {total} of which {free} is free."
)
OWN = " Of the allocated memory {own} is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."


def torch_sentences(
    device: str, asked: str, total: str, free: str, own: str = "0 bytes", around: str = ""
) -> list[str]:
    return sentences(of((TORCH + OWN).format(device=device, asked=asked, total=total, free=free, own=own) + around))


def test_free_memory_that_is_enough_is_no_shortage() -> None:
    said = torch_sentences("CUDA", "2.00 MiB", "288.00 GiB", "203.00 GiB", "80.00 GiB")
    assert said[1] == "The figures do not explain it: 203 GiB was free. This is no shortage of memory."
    assert "limit" in said[2] and not any("batch" in line for line in said)


@pytest.mark.parametrize(
    ("device", "asked", "total", "limit"),
    [
        ("XPU", "4.00 GiB", "15.11 GiB", "4.00 GiB in one allocation"),
        ("HIP", "16.00 GiB", "15.24 GiB", "the 15.2 GiB that the driver offers"),
    ],
)
def test_a_limit_of_the_driver_is_named(device: str, asked: str, total: str, limit: str) -> None:
    assert limit in torch_sentences(device, asked, total, "15.11 GiB")[1]


def test_memory_outside_of_the_framework_is_told() -> None:
    """Use 128 GiB, of which 1 GiB is free and 58 GiB is PyTorch's: others hold 69 GiB."""
    said = torch_sentences("HIP", "3.00 GiB", "128.00 GiB", "1.00 GiB", "58.00 GiB")
    assert said[2].startswith("69.0 GiB in use is not PyTorch's") and "rocm-smi" in said[2]


def test_advice_is_that_of_the_engine_and_the_device() -> None:
    figures = ("CUDA", "3.00 GiB", "80.00 GiB", "1.00 GiB", "78.00 GiB")
    assert "--gpu-memory-utilization" in torch_sentences(*figures, around="\nvllm/v1/worker/gpu_worker.py")[2]
    assert "accumulation" in torch_sentences(*figures, around="\nvllm/worker.py\nloss.backward()")[2]
    mps = of("MPS backend out of memory (MPS allocated: 8.00 GiB, other allocations: 0 bytes, max allowed: 9.00 GiB). "
             "Tried to allocate 2.00 GiB on private pool.")  # fmt: skip
    assert not any("torch.cuda" in line for line in sentences(mps))


def test_the_largest_part_of_a_program_is_told_and_not_a_small_one() -> None:
    text = "Ran out of memory in memory space hbm. Used 35.83G of 31.25G hbm. Exceeded hbm capacity by 4.59G.\n\n"
    said = sentences(
        of(f"{text}Total hbm usage >= 36.09G:\n    reserved  260.00M\n    program  30.11G\n    arguments  5.72G")
    )
    assert said[2].startswith("30.1 GiB is the program itself") and len(said) == 3


def test_a_full_occupancy_line_is_a_cause() -> None:
    text = (
        "Allocator (GPU_1_bfc) ran out of memory trying to allocate 4.50GiB (rounded to 4831838208)requested by op \n"
    )
    assert "Too much memory is in use: about 99%" in sentences(of(text + "*" * 99 + "_"))[1]


def test_the_length_that_fits_a_kv_cache() -> None:
    text = (
        "To serve at least one request with the model's max seq len (131072), (8.00 GiB KV cache is needed, which is "
        "larger than the available KV cache memory (2.00 GiB). "
    )
    assert any("--max-model-len to about 32768" in line for line in sentences(of(text)))
    stated = text + "Based on the available memory, the estimated maximum model length is 32000. Try decreasing it."
    assert any("--max-model-len 32000, the longest that fits" in line for line in sentences(of(stated)))
