"""Long and adversarial texts: reading takes linear time, and of a very long one only the end is read."""

from __future__ import annotations

import contextlib
from io import BytesIO
from pathlib import Path

import fsspec
import pytest
from support.growth import grows_linearly

from tb_memplugin.catalog.listing import listing_of_stream
from tb_memplugin.errors import InputError
from tb_memplugin.formats import OOM_TEXT_BYTES
from tb_memplugin.logdir import parts
from tb_memplugin.logdir.files import HostFile, read_content
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_text import lines
from tb_memplugin.readers import oom_text
from tb_memplugin.readers.oom_text import MAX_LINES, read_oom_text
from tb_memplugin.readers.oom_text.excerpts import BEFORE_BYTES, WINDOW_BYTES, LogExcerpts, excerpts_of
from tb_memplugin.readers.oom_text.messages import MESSAGES

MARKS = "\n".join(word for message in MESSAGES for word in message.marks())  # so that every pattern is tried
FRAGMENTS = [
    "a", "x\n", "InUse at 1 of size 1\n", "(pid=1) a\n(pid=2) b\n", "\x1b]", "(a (a ", "Buffer 1:\nSize: 1B\n",
    "Ran out of memory in memory space vmem while allocating on stack for   ", "Allocator (",
]  # fmt: skip


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_time_is_linear_in_the_size(fragment: str) -> None:
    def read(size: int) -> None:
        with contextlib.suppress(InputError):
            read_oom_text((MARKS + fragment * (size // len(fragment))).encode())

    assert grows_linearly(read, 100_000)


def test_only_the_last_lines_of_a_long_text_are_read() -> None:
    text = b"\n" * (2 * MAX_LINES) + b"CUDA error: out of memory\n"
    [recording] = read_oom_text(text)
    [cut] = [caveat for caveat in recording.caveats if caveat.code == "only_end_read"]
    assert cut.bytes == len(text) - (MAX_LINES - 1) - len("CUDA error: out of memory")


NOISE = b"step 1 loss 2.5 memory 12.5 GB\n"
FIRST = b"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has 8.00 GiB in use.\n"
STARTED = b"INFO [gpu_model_runner.py:4879] Model loading took 2.89 GiB memory and 60.297843 seconds\n"
LOG = STARTED + 5_000 * NOISE + FIRST + 5_000 * NOISE + b"[rank3]: " + FIRST.replace(b"2.00", b"3.00") + 9_000 * NOISE


def excerpts(log: bytes, piece: int) -> bytes:
    found = LogExcerpts()
    for at in range(0, len(log), piece):
        found.add(log[at : at + piece])
    return found.content()


@pytest.mark.parametrize("piece", [1_000, 70_000, 10_000_000])
def test_excerpts_have_the_start_up_lines_and_the_first_error_of_a_worker(piece: int) -> None:
    found = excerpts(LOG, piece)
    assert found.startswith(STARTED.rstrip()) and FIRST in found
    assert found.split(b"\n")[1] == NOISE.rstrip(), "an excerpt begins with a whole line"
    assert len(found) < len(STARTED) + BEFORE_BYTES + WINDOW_BYTES + len(FIRST)


def test_each_message_of_a_device_is_found_in_the_middle_of_a_log() -> None:
    examples = [kind.example.encode() for kind in MESSAGES if not kind.host]
    noise = 2_000 * NOISE
    assert [one for one in examples if one[:60] not in excerpts_of(b"\n".join((noise, one, noise)))] == []


def test_a_message_in_a_line_without_an_end_is_found() -> None:
    long = b"step " * 100_000
    assert b"Tried to allocate" in excerpts_of(long + FIRST + long)


def test_the_first_error_of_a_long_text_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oom_text, "MAX_BYTES", 10_000)
    [recording] = read_oom_text(LOG)
    assert recording.out_of_memory is not None and recording.out_of_memory.asked == 2 * 2**30
    [cut] = [caveat for caveat in recording.caveats if caveat.code == "only_end_read"]
    assert cut.bytes is not None and len(LOG) - 200_000 < cut.bytes < len(LOG) - 10_000


def test_the_first_error_of_a_long_file_is_read_too(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(FIRST + (OOM_TEXT_BYTES // len(NOISE) + 10_000) * NOISE)
    content, skipped = read_content(HostFile(str(log), "", log.stat().st_size, ""))
    assert bytes(content[: len(FIRST)]) == FIRST and 0 < skipped < log.stat().st_size - OOM_TEXT_BYTES
    [recording] = listing_of_stream(BytesIO(log.read_bytes()), "-").recordings
    assert recording.out_of_memory is not None and recording.out_of_memory.asked == 2 * 2**30


def test_a_log_in_a_remote_store_is_read_as_a_local_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_SEARCHED_BYTES", 2 << 20)
    content = FIRST + (3 << 20) // len(NOISE) * NOISE + b"[rank4]: " + FIRST + (OOM_TEXT_BYTES // len(NOISE)) * NOISE
    log = tmp_path / "train.oom.txt"
    log.write_bytes(content)
    fsspec.filesystem("memory").pipe("/logs/train.oom.txt", content)
    try:
        far = read_content(HostFile("memory://logs/train.oom.txt", "", len(content), ""))
    finally:
        fsspec.filesystem("memory").rm("/logs", recursive=True)
    near = read_content(HostFile(str(log), "", len(content), ""))
    assert bytes(far[0]) == bytes(near[0]) and far[1] == near[1]
    assert bytes(far[0]).startswith(FIRST) and b"[rank4]" not in bytes(far[0])  # beyond what is searched


def test_the_lines_before_an_error_are_those_of_its_worker_and_repeated_ones_once() -> None:
    """Give lines that differ in numbers alone once, and take control characters out."""
    log = b"[rank0]: loaded\n" + b"".join(b"[rank3]: step %d loss 2.5\n" % step for step in range(900))
    log += b"[rank0]: step 900\n[rank3]: saving \x07checkpoint\n[rank3]: " + FIRST.removeprefix(b"[rank3]: ")
    [recording] = read_oom_text(log)
    assert recording.out_of_memory is not None
    assert recording.out_of_memory.lines_before == (
        "step 899 loss 2.5 (and those before it, with other numbers)", "saving  checkpoint",
    )  # fmt: skip
    assert "    saving  checkpoint" in lines(explain(recording))


def test_a_message_without_a_log_has_no_lines_before_it() -> None:
    [recording] = read_oom_text(FIRST)
    assert recording.out_of_memory is not None and recording.out_of_memory.lines_before == ()
    assert "Before the error:" not in lines(explain(recording))
