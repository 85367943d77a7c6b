"""HloProto: buffers of a compiled program, their addresses, and their lifetimes in program order.

Data flows from module/ (tables of the file, schedule) to dataflow/ (uses and values) to placement, and
from these to columns and recordings.
"""

import re

from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.budget import ReadBudget, decompress
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.hlo.recordings import read_hlo

__all__ = ["open_hlo", "read_hlo"]

SUFFIX = re.compile(r"(\.hlo_proto|\.hlo)\.pb(\.gz)?$")


def open_hlo(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the one part of a program's file."""
    name = SUFFIX.sub("", path.rsplit("/", 1)[-1])
    # XProf names the file after the program's key. With any other name the key is read from the file.
    title = name if re.search(r"\(\d+\)$", name) else ""

    def read() -> list[Recording]:
        budget = ReadBudget(data, path)
        return read_hlo(decompress(data, budget), title=title, run=run, host=host, source=path, budget=budget)

    return [FilePart(name, RecordingKind.PROGRAM, path, len(data), read, content=data)]
