"""Long and adversarial texts: reading takes linear time, and of a very long one only the end is read."""

from __future__ import annotations

import time

import pytest

from tb_memplugin.errors import InputError
from tb_memplugin.readers.oom_text import MAX_LINES, MESSAGES, read_oom_text

MARKS = "\n".join(message.mark() for message in MESSAGES)  # so that every pattern is tried
FRAGMENTS = [
    "a", "x\n", "InUse at 1 of size 1\n", "(pid=1) a\n(pid=2) b\n", "\x1b]", "(a (a ", "Buffer 1:\nSize: 1B\n",
    "Ran out of memory in memory space vmem while allocating on stack for   ", "Allocator (",
]  # fmt: skip


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_time_is_linear_in_the_size(fragment: str) -> None:
    def seconds(size: int) -> float:
        text = (MARKS + fragment * (size // len(fragment))).encode()
        begin = time.process_time()
        try:
            read_oom_text(text)
        except InputError:
            pass
        return time.process_time() - begin

    small = min(seconds(100_000) for _ in range(2))
    assert seconds(800_000) < 20 * small + 0.2


def test_only_the_last_lines_of_a_long_text_are_read() -> None:
    text = b"\n" * (2 * MAX_LINES) + b"CUDA error: out of memory\n"
    [recording] = read_oom_text(text)
    [cut] = [caveat for caveat in recording.caveats if caveat.code == "only_end_read"]
    assert cut.bytes == len(text) - (MAX_LINES - 1) - len("CUDA error: out of memory")
