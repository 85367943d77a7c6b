"""Complete out-of-memory texts with their buffer lists, and the same texts truncated or damaged."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers import TESTS

from tb_memplugin.analysis.advice import advise
from tb_memplugin.analysis.ownership.classification import Classification, forest
from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_text import lines
from tb_memplugin.questions.kinds import first_view as memory_viewer
from tb_memplugin.questions.kinds.verdict import verdict, verdict_text
from tb_memplugin.questions.recording import details, tables, usage
from tb_memplugin.readers.oom_text import read_oom_text

TEXTS = TESTS / "data" / "oom_texts"
ALL = sorted(TEXTS.glob("*.txt"))
KIB, MIB, GIB = 2**10, 2**20, 2**30


def read(name: str) -> Recording:
    (recording,) = read_oom_text((TEXTS / name).read_bytes(), source=name)
    return recording


def caveats(recording: Recording) -> dict[str, int | None]:
    return {caveat.code: caveat.bytes for caveat in recording.caveats}


def rows(recording: Recording) -> list[tuple[str, int, int]]:
    table = recording.allocations
    return [(table.name[row], int(table.size[row]), int(table.requested[row])) for row in range(len(table))]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_one_instant_whose_rows_are_no_more_than_what_is_used(path: Path) -> None:
    recording = read(path.name)
    assert (recording.kind, recording.axis, recording.length) == ("oom", Axis.INSTANT, 1)
    assert recording.out_of_memory is not None and recording.out_of_memory.rank == 0
    assert 0 <= explained_bytes(recording)[0] <= peak(recording).bytes


def without_log(recording: Recording) -> OutOfMemory:
    """Return the failure without the lines before it."""
    assert recording.out_of_memory is not None
    return replace(recording.out_of_memory, lines_before=())


def test_a_program_that_does_not_fit_a_tpu() -> None:
    recording = read("tpu_compile.txt")
    assert recording.memory == "HBM"
    assert without_log(recording) == OutOfMemory(
        asked=20_669_530_112, capacity=16_911_433_728, exceeded=3_758_096_384, phase=OutOfMemoryPhase.COMPILE
    )  # 19.25G
    assert peak(recording).bytes == 20_669_530_112
    assert rows(recording) == [
        ("arguments", 4 * GIB, 4 * GIB),
        ("fusion.12", 8 * GIB, 8 * GIB),
        ("copy.7", 4 * GIB, 4 * GIB),
        ("fusion.31", GIB, 72 * MIB),
        ("custom-call.2", 16 * MIB, 16 * MIB),
        ("global allocations", 4 * MIB, 4 * MIB),  # the list has all scoped buffers
    ]
    # 19.25 GiB, of which 17 GiB and 20 MiB are listed; 3 of 4 GiB of outputs share memory with arguments.
    assert caveats(recording) == {"not_listed": 2.25 * GIB - 20 * MIB, "outputs_not_shared": GIB}
    table = recording.allocations
    assert [table.op[row] for row in range(1, 4)] == ["fusion", "copy", "fusion"]
    assert table.op_name[2] == "jit(train_step)/transpose(jvp(Model))/layers_3/mlp/dot_general"
    assert table.shape[1] == "f32[2048,1048576]{1,0:T(8,128)}"
    assert [table.dtype[row] for row in range(6)] == ["", "f32", "bf16", "f32", "", ""]
    assert table.role.tolist() == [
        Role.PARAMETER, Role.TEMPORARY, Role.TEMPORARY, Role.TEMPORARY, Role.TEMPORARY, Role.UNKNOWN,
    ]  # fmt: skip
    assert recording.stacks.frames(int(table.stack[1])) == [("", "/home/user/model.py", 41)]


def test_the_older_wording_counts_what_the_system_reserves() -> None:
    recording = read("tpu_compile_old.txt")
    assert rows(recording) == [
        ("reserved by the system", 512 * MIB, 512 * MIB),
        ("iota.2", 12 * GIB, 960 * MIB),
        ("global allocations", MIB, MIB),
        ("scoped allocations", 3 * MIB, 3 * MIB),
    ]
    assert recording.allocations.op[1] == "iota"
    assert caveats(recording) == {"not_listed": 5 * GIB - 4 * MIB, "arguments_unknown": None}


def test_one_failure_of_a_gpu_told_four_times() -> None:
    """Mix the compiler's warning, the allocator, XLA and the traceback, each line behind a cluster's colored prefix."""
    recording = read("xla_gpu.txt")
    assert recording.memory == "GPU_0_bfc"
    assert recording.out_of_memory == OutOfMemory(asked=2_115_270_600)
    assert peak(recording).bytes == 8_461_085_573  # 7.88GiB
    assert [(name, size) for name, size, _ in rows(recording)] == [
        ("Buffer 1", 5_239_860_101),  # 4.88GiB
        ("Buffer 2", 2_093_796_557),  # 1.95GiB
        ("Buffer 3", 1_047_967_826),  # 999.42MiB
        ("Buffer 4", 16),
    ]
    assert caveats(recording) == {"not_listed": 79_461_073, "rematerialized": 2 * GIB, "occupancy": None}
    table = recording.allocations
    assert [table.op[row] for row in range(4)] == ["custom-call", "fusion", "parameter", "custom-call"]
    assert [table.dtype[row] for row in range(4)] == ["f32", "f32", "f16", ""]  # the last one is a tuple
    assert recording.stacks.frames(int(table.stack[1])) == [("", "/home/user/model.py", 171)]


def test_a_dump_is_a_map_of_addresses() -> None:
    """Compare with the dump's own sum of its chunks in use, and with its limit less that sum."""
    recording = read("bfc_tensorflow.txt")
    in_use = 8 * 4096 + 21 * MIB + 2_096_896 + 32 * MIB
    assert without_log(recording) == OutOfMemory(
        asked=32 * MIB, free=64 * MIB - in_use, largest_free=4_161_536, capacity=64 * MIB, in_use=in_use,
        wanted_by="AddV2, a tensor of shape [2048,4096] and type float",
    )  # fmt: skip
    table, regions = recording.allocations, recording.regions
    assert len(table) == 8 + 21 + 1 + 1 and peak(recording).bytes == in_use
    assert sorted(regions.size.tolist()) == [2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB]
    assert regions.index.tolist() == sorted(regions.index.tolist())
    for row in range(len(table)):
        assert table.id[row] == regions.index[table.region[row]] + table.offset[row]
    assert not caveats(recording) and recording.reported_peak == 57_703_137  # 55.03MiB, as printed


def test_an_old_dump_lists_free_chunks_last() -> None:
    recording = read("bfc_old.txt")
    # 3072 bytes are free, in pieces of 1024 and 2048: the request of 3072 fails by fragmentation.
    assert recording.out_of_memory == OutOfMemory(asked=3072, free=3072, largest_free=2048, capacity=5120, in_use=2048)
    assert recording.regions.size.tolist() == [5120]
    assert recording.allocations.offset.tolist() == [0, 2304, 4608]


def test_free_neighbours_are_one_hole_but_not_across_segments() -> None:
    """Return two segments. At 0: 2 in use, 3 and 4 free, 1 in use. At 10: 5 free."""
    text = "\n".join(
        [
            "Allocator (GPU_0_bfc) ran out of memory trying to allocate 8B (rounded to 8)requested by op x",
            "BFCAllocator dump for GPU_0_bfc",
            *("Next region of size 10", "InUse at 0 of size 2 next 1", "Free  at 2 of size 3 next 2"),
            *("Free  at 5 of size 4 next 3", "InUse at 9 of size 1 next 4"),
            *("Next region of size 5", "Free  at a of size 5 next 5"),
            "     Summary of in-use Chunks by size: \n",
        ]
    )
    (recording,) = read_oom_text(text.encode())
    failure = recording.out_of_memory
    assert failure is not None and (failure.free, failure.largest_free, failure.in_use) == (12, 7, 3)
    assert recording.regions.size.tolist() == [10, 5]


def test_an_arena_with_colors() -> None:
    recording = read("onnxruntime.txt")
    assert without_log(recording) == OutOfMemory(
        asked=67_108_864, free=50_331_392, largest_free=50_331_392, wanted_by="Expand wide"
    )


def test_a_dump_that_ends_early_says_how_much_it_explains() -> None:
    text = (TEXTS / "bfc_tensorflow.txt").read_text()
    cut = text[: text.index("InUse at 7f66313f8040") + 32]  # inside a number, of the third segment's third chunk
    (recording,) = read_oom_text(cut.encode())
    assert sorted(recording.regions.size.tolist()) == [
        2 * MIB,
        16 * MIB,
        32 * MIB,
    ]  # cut after the third segment
    assert len(recording.allocations) == 1 + 19 + 2
    assert caveats(recording) == {"text_cut": None}  # the allocator's own sum follows the cut


def test_a_list_that_ends_early_says_how_much_it_explains() -> None:
    text = (TEXTS / "tpu_compile.txt").read_text()
    cut = text[: text.index("     Shape: bf16[32,8192,8192]")]
    (recording,) = read_oom_text(cut.encode())
    assert [name for name, _, _ in rows(recording)] == [
        "arguments", "fusion.12", "", "global allocations", "scoped allocations",
    ]  # fmt: skip
    assert caveats(recording)["text_cut"] == 20_669_530_112 - (16 * GIB + 20 * MIB)


def test_workers_that_write_into_one_log_at_once() -> None:
    """Interleave the lines of two dumps, with the driver's lines between them."""
    texts = [(TEXTS / name).read_text().splitlines() for name in ("bfc_tensorflow.txt", "bfc_fragmented.txt")]
    log = []
    for number, pair in enumerate(zip_longest(*texts, fillvalue="")):
        log += [f"(Worker pid={10 + worker}) {line}" for worker, line in enumerate(pair)]
        log.append(f"step {number}")
    recordings = read_oom_text("\n".join(log).encode())
    assert [recording.out_of_memory for recording in sorted(recordings, key=lambda r: -peak(r).bytes)] == [
        replace(failure, rank=rank)
        for failure, rank in [
            (read("bfc_tensorflow.txt").out_of_memory, 1),
            (read("bfc_fragmented.txt").out_of_memory, 0),
        ]
        if failure is not None
    ]


def test_a_list_without_its_head() -> None:
    """Start the copy at the list of buffers."""
    text = (TEXTS / "xla_gpu.txt").read_text()
    at = text.index("BufferAssignment stats")
    (recording,) = read_oom_text(text[at : text.index("Traceback", at)].encode())
    assert len(recording.allocations) == 4 and peak(recording).bytes == 8_461_085_573
    assert recording.out_of_memory == OutOfMemory()


def test_a_list_that_a_web_page_has_run_together() -> None:
    text = (TEXTS / "tpu_compile.txt").read_text()
    text = text.replace("Used 19.25G", "**Used 19.25G").replace("==========\n\n  2. Size", "========== 2\\. Size")
    (recording,) = read_oom_text(text.encode())
    assert rows(recording) == rows(read("tpu_compile.txt"))


def test_several_failures_are_several_recordings_and_the_fullest_comes_first() -> None:
    dump = (TEXTS / "bfc_tensorflow.txt").read_text()
    text = (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB "
        f"is free. Of the allocated memory 6.00 GiB is allocated by PyTorch.\n{dump}\nexit code 137\n"
    )
    recordings = read_oom_text(text.encode())
    assert [recording.memory for recording in recordings] == ["bfc_cpu_allocator_for_gpu", "cuda:0", "host memory"]
    assert [recording.out_of_memory.rank for recording in recordings if recording.out_of_memory] == [0, 1, 2]


def test_the_failures_of_workers_are_told_apart_or_folded() -> None:
    line = (
        "[rank{}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. GPU 0 has 8.00 GiB in use.\n"
    )
    text = "".join(line.format(rank, size) for rank, size in ((0, "2.00"), (1, "2.00"), (2, "3.00"), (3, "2.00")))
    larger, equal = sorted(read_oom_text(text.encode()), key=lambda recording: recording.title)
    assert (larger.title, equal.title) == ("OOM of rank2: 3.00 GiB requested", "OOM: 2.00 GiB requested")
    assert any("3 times, of rank3, rank1, rank0" in caveat.text for caveat in equal.caveats)


def test_failures_of_one_memory_have_ids_of_their_own() -> None:
    line = "Out of memory while trying to allocate {} bytes.\n"
    sizes = [2**20, *(2**i for i in range(21, 30)), 2**20]  # the first again, too far away to be merged
    recordings = read_oom_text("".join(line.format(size) for size in sizes).encode())
    assert [recording.out_of_memory.asked for recording in recordings if recording.out_of_memory] == sizes[:0:-1]
    assert len({recording.id for recording in recordings}) == len(sizes) - 1
    assert [caveat.code for caveat in recordings[0].caveats if caveat.code == "repeated"] == ["repeated"]
    # The page distinguishes recordings of one file by their memories.
    assert [recording.memory for recording in recordings[:3]] == [
        "device memory", "device memory (2)", "device memory (3)",
    ]  # fmt: skip


def test_a_log_of_retries_is_bounded() -> None:
    text = "".join(f"Out of memory while trying to allocate {10**6 * (i % 20 + 1)} bytes.\n" for i in range(1000))
    recordings = read_oom_text(text.encode())
    assert len(recordings) == 20
    assert any(caveat.text == "The text has this failure 3 times" for caveat in recordings[0].caveats)
    assert recordings[0].out_of_memory is not None and recordings[0].out_of_memory.asked == 20 * 10**6


def test_sizes_beyond_any_memory_are_left_out() -> None:
    chunks = "".join(f"InUse at {i * 10**15:x} of size {'9' * 15} next 1\n" for i in range(100))
    (recording,) = read_oom_text(
        f"Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB\n{chunks}".encode()
    )
    assert len(recording.allocations) == 0


@pytest.mark.slow
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_text_cut_off_anywhere_is_read_or_refused(path: Path) -> None:
    data = path.read_bytes()
    for end in [*range(0, len(data), 97), *random.Random(1).sample(range(len(data)), 50)]:
        check(data[:end])
        check(data[end:])


@settings(max_examples=150)
@given(st.sampled_from(ALL), st.randoms(use_true_random=False))
def test_damaged_bytes_cost_no_more_than_themselves(path: Path, random: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(random.randrange(1, 60)):
        at = random.randrange(len(data))
        data[at : at + random.randrange(3)] = random.randbytes(random.randrange(4))
    check(bytes(data))


@settings(max_examples=150)
@given(st.sampled_from(ALL), st.randoms(use_true_random=False))
def test_damaged_numbers(path: Path, random: random.Random) -> None:
    """Replace each number by an arbitrary one."""

    def other(match: re.Match[str]) -> str:
        return random.choice([match[0], "0", "9" * random.randrange(1, 25), "18446744073709551615", match[0] * 3])

    check(re.sub(r"\d+", other, path.read_text()).encode())


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_whatever_was_read_can_be_asked_everything(path: Path) -> None:
    data = path.read_bytes()
    for end in range(len(data), 0, -max(len(data) // 12, 1)):
        try:
            recordings = read_oom_text(data[:end])
        except InputError:
            continue
        for recording in recordings:
            memory_viewer.first_view(recording)
            tables.rows(recording)
            usage.usage(recording, 0, 1, 1)
            assert advise(recording) == []
            json.dumps(explain(recording), allow_nan=False)
            assert next(iter(lines(explain(recording)))) == verdict_text(verdict(recording))
            for row in range(min(len(recording.allocations), 3)):
                assert details.details(recording, row)["row"] == row
            for by in Classification:
                assert len(forest(recording, by).leaf) == len(recording.allocations)


@given(st.binary(max_size=2000))
def test_any_bytes(data: bytes) -> None:
    check(data)


def check(data: bytes) -> None:
    """Expect valid tables, or an error with a message."""
    try:
        recordings = read_oom_text(data)
    except InputError:
        return
    for recording in recordings:
        table, regions = recording.allocations, recording.regions
        assert 0 <= explained_bytes(recording)[0] <= peak(recording).bytes
        assert (table.size >= 0).all() and (table.requested <= table.size).all()
        placed = np.flatnonzero(table.region >= 0)
        ends = table.offset[placed] + table.size[placed]
        assert (table.offset[placed] >= 0).all() and (ends <= regions.size[table.region[placed]]).all()


@pytest.mark.parametrize("filler", [
    "Attempting to allocate 1.00G. That was not possible. ", "Buffer 1:\nSize: ", "InUse at ", " " * 10, "\n" * 10,
    "(pid=1 ", "\x1b[", "Ran out of memory in memory space hbm. Used ", "shape = '", "1. Size: 1.00G\n", "= ",
    "running x Status Message: ", "*" * 49, "\\n", "Killed process 1 (a) anon-rss:", "Process 1 has ", '"',
])  # fmt: skip
def test_no_text_takes_longer_than_its_length_explains(filler: str) -> None:
    """Check run time: a pattern that rescans the text from every position would take minutes."""
    check((filler * (500_000 // len(filler))).encode())
    check(
        ("Ran out of memory in memory space hbm. Used 2.00G of 1.00G hbm." + filler * (200_000 // len(filler))).encode()
    )
