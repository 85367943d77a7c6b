"""One thing in a file that can be read on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tb_memplugin.recording import Recording


@dataclass(frozen=True)
class Part:
    """A file is opened for the list of its parts; `read` then parses one. A damaged part costs only itself."""

    title: str
    kind: str
    source: str
    size: int  # bytes in the file
    read: Callable[[], list[Recording]]
