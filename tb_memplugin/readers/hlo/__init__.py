"""HloProto: buffers of a compiled program, their addresses, and their lifetimes in program order.

Data flows from module/ (tables of the file, schedule) to dataflow/ (uses and values) to lifetimes/ (placement), and
from these to columns and recordings.
"""

from __future__ import annotations

import re
from functools import partial

from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.hlo.recordings import read_hlo

__all__ = ["open_hlo", "read_hlo"]


def open_hlo(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the one part of a program's file."""
    name = re.sub(r"(\.hlo_proto|\.hlo)\.pb$", "", path.rsplit("/", 1)[-1])
    # XProf names the file after the program's key. With any other name the key is read from the file.
    title = name if re.search(r"\(\d+\)$", name) else ""
    read = partial(read_hlo, data, title=title, run=run, host=host, source=path)
    return [FilePart(name, RecordingKind.PROGRAM, path, len(data), read)]
