"""Bytes that a traced step of PyTorch has, added up in the plainest way."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tb_memplugin.torch_fit.storages import MemoryLog

try:
    OLD = tuple(map(int, version("torch").split(".")[:2])) < (2, 7)
except PackageNotFoundError:
    OLD = False
NOT_OF_OLD = pytest.mark.skipif(OLD, reason="of PyTorch 2.6, FSDP and tensor parallelism cannot be traced")


def live_bytes(log: MemoryLog, without: str = "") -> list[int]:
    """Return the bytes of all tensors after each event, without those that a function of this name allocates."""
    names, stacks = [name for name, _, _ in log.frames], list(log.stacks)
    sizes: dict[int, int] = {}

    def changes() -> Iterator[int]:
        for one in log.events:
            if one.size < 0:
                yield -sizes.pop(one.number)
                continue
            is_left_out = any(names[frame] == without for frame in stacks[one.stack])
            sizes[one.number] = 0 if is_left_out else one.size
            yield sizes[one.number]

    return list(accumulate(changes()))
