"""One thing in a file that can be read on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording


class Reason(NamedTuple):
    """Why there is nothing, and what to do; `code` is for programs."""

    code: str
    text: str
    remedy: str


@dataclass(frozen=True)
class Part:
    """A file is opened for the list of its parts; `read` then parses one. A damaged part costs only itself."""

    title: str
    kind: RecordingKind
    source: str
    size: int  # bytes in the file
    read: Callable[[], list[Recording]]
    why_none: Callable[[], Reason] | None = None  # where `read` finds no recording at all
