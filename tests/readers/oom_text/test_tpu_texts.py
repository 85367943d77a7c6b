"""Errors of libtpu 0.0.52 about programs that do not fit, as it printed them, in tests/data/oom_texts/tpu_*.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.out_of_memory import KernelBuffer, OutOfMemory
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.oom.failure import sentences
from tb_memplugin.readers.oom_text import read_oom_text

TEXTS = Path(__file__).parents[2] / "data" / "oom_texts"
KIB, MIB, GIB = 2**10, 2**20, 2**30


def read(name: str) -> tuple[Recording, OutOfMemory]:
    (recording,) = read_oom_text((TEXTS / f"tpu_{name}.txt").read_bytes())
    assert recording.out_of_memory is not None
    return recording, recording.out_of_memory


@pytest.mark.parametrize(
    ("name", "memory", "asked", "capacity", "wanted_by"),
    [
        ("v5e_blocks", "VMEM", 256 * MIB, 128 * MIB, ""),
        ("v6e_blocks", "VMEM", 256 * MIB, round(127.94 * MIB), ""),
        ("v5e_blocks_limit", "VMEM", 64 * MIB, 8 * MIB, "limited.1"),
        ("v6e_blocks_limit", "VMEM", 64 * MIB, 8 * MIB, "limited.1"),
        ("v5e_default", "VMEM", 64 * MIB, 16 * MIB, "blocks.1"),
        ("v5e_vmem_scratch", "VMEM", 256 * MIB, 128 * MIB, "scratch operand of vmem.1"),
        ("v5p_blocks", "VMEM", 128 * MIB, 64 * MIB, "input window 0 of blocks.1"),
        ("v4_blocks_limit", "VMEM", 32 * MIB, 16 * MIB, "input window 0 of limited.1"),
        ("v5e_smem_scratch", "SMEM", 16 * MIB, MIB, "scratch operand of smem.1"),
        ("v6e_smem_scratch", "SMEM", 16 * MIB, MIB, "scratch operand of smem.1"),
        ("v5e_smem_prefetch", "SMEM", 8 * MIB, MIB, "prefetched SMEM operand 0 of f.1"),
        ("v5e_semaphores", "Sflag", 400_000, 2 * KIB, "scratch operand of sem.1"),
        ("7x_semaphores", "Sflag", 400_000, 16 * KIB, "scratch operand of sem.1"),
        ("v5e_hbm", "HBM", round(23.88 * GIB), round(15.75 * GIB), ""),
        ("7x_hbm", "HBM", None, round(94.74 * GIB), ""),
    ],
)
def test_the_memory_and_its_sizes(name: str, memory: str, asked: int | None, capacity: int, wanted_by: str) -> None:
    recording, failure = read(name)
    assert (recording.memory, failure.wanted_by) == (memory, wanted_by)
    assert failure.capacity == pytest.approx(capacity, abs=1)
    assert asked is None or failure.asked == pytest.approx(asked, abs=1)


def test_a_tag_is_the_operand_the_block_and_the_buffering() -> None:
    recording, failure = read("v5e_blocks")
    block, full = "f32[16384,1024]", "f32[65536,1024]"
    assert failure.kernel_buffers == (
        KernelBuffer("input window 0", 128 * MIB, block, full, 2),
        KernelBuffer("output window 0", 128 * MIB, block, full, 2),
    )
    rows = recording.allocations
    assert [rows.name[row] for row in range(len(rows))] == [
        "blocks.1: input window 0, 2 buffers",
        "blocks.1: output window 0, 2 buffers",
    ]
    assert {rows.shape[row] for row in range(len(rows))} == {block}
    assert peak(recording).bytes == 256 * MIB


def test_only_the_limit_of_a_kernel_can_be_raised() -> None:
    assert read("v5e_blocks_limit")[1].kernel_limit
    assert not read("v5e_blocks")[1].kernel_limit
    assert not read("v5p_blocks")[1].kernel_limit


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        # Each remedy was compiled for the chip: blocks of 4096 rows with 64 MiB on v5e and v6e, of 2048 rows with
        # 32 MiB on v5p and 7x, and of 512 rows on v4.
        ("v5e_blocks", "f32[4096,1024] for input window 0 in place of f32[16384,1024]"),
        ("v5e_blocks", "vmem_limit_bytes=64 * 2**20"),
        ("v6e_blocks", "f32[4096,1024]"),
        ("v5p_blocks", "f32[2048,1024]"),
        ("v5p_blocks", "vmem_limit_bytes=32 * 2**20"),
        ("v4_blocks", "f32[512,1024]"),
        ("v5e_default", "vmem_limit_bytes=64 * 2**20"),
        ("v5e_default", "TPU v5e, TPU v6e have more VMEM than that"),
        ("v5e_default", "Use blocks 4 times smaller"),
        ("v5e_blocks_limit", "Use blocks 8 times smaller"),
        ("v5e_vmem_scratch", "scratch memory at least 8 times smaller"),
        ("v5e_smem_scratch", "memory_space=pl.ANY"),
        ("v5e_semaphores", "Use at most 512 semaphores; the kernel has 100,000"),
        ("7x_semaphores", "Use at most 4,096 semaphores"),
        ("v5e_hbm", "--xla_dump_hlo_as_proto"),
        ("v5e_hbm", "open jit_f in FOLDER"),
    ],
)
def test_the_remedy(name: str, remedy: str) -> None:
    said = sentences(read(name)[0])[2:]
    assert any(remedy in sentence for sentence in said), said


def test_the_dump_is_not_offered_where_the_text_lists_buffers() -> None:
    assert not any("xla_dump_to" in sentence for sentence in sentences(read("v5e_blocks")[0]))


def test_a_kernel_within_its_limit_has_no_hint() -> None:
    text = b"Ran out of memory in memory space vmem while allocating on stack for %f = f32[8]{0} custom-call(%x)"
    (recording,) = read_oom_text(text)
    assert recording.memory == "VMEM"
    assert recording.out_of_memory is not None
    assert (recording.out_of_memory.wanted_by, recording.out_of_memory.asked) == ("f", None)
    assert sentences(recording)
