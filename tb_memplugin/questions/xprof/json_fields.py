"""Values of XProf's JSON, and the tables of a program that its answers read."""

from typing import Any
import numpy as np
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.program import Program

MIB = 2**20

Json = dict[str, Any]


def nonempty_fields(fields: Json) -> Json:
    """Return the fields without zeros, empty texts and empty lists, which XProf leaves out."""
    return {name: value for name, value in fields.items() if value}


def source_info(recording: Recording, leaf: int) -> Json:
    """Return the source line and the stack of a leaf frame; empty without a stack."""
    frames = recording.stacks.frames(leaf)
    if not frames:
        return {}
    _, file, line = frames[0]
    stack = "\n".join(f"{file}:{line}" for _, file, line in frames)
    return nonempty_fields({"fileName": file, "lineNumber": line, "stackFrame": stack})


def split_name(name: str) -> tuple[str, list[str]]:
    """Split a buffer's name into instruction and shape index: `fusion{1,0}` is fusion, 1 and 0."""
    if not name.endswith("}"):
        return name, []
    instruction, _, index = name[:-1].rpartition("{")
    return instruction, index.split(",")


def id_text(number: int) -> str:
    """Format a 64-bit id, which XProf writes as a string; zero is empty."""
    return str(number) if number else ""


def column_texts(column: Text, which: I64 | None = None) -> list[str]:
    """Return the texts of a column, or of some rows of it; each distinct text is decoded once."""
    codes = column.codes if which is None else column.codes[which]
    used, index = np.unique(codes, return_inverse=True)
    texts = [column.strings[code] if code >= 0 else "" for code in used.tolist()]
    return [texts[i] for i in index.tolist()]


POINTER_TABLE = "tuple"  # the dtype of a table of pointers to a tuple's elements, whose memory is never reused


class ProgramTables:
    """The buffers and regions of one program in one memory space. Thread-local memory does not count, as in XProf."""

    def __init__(self, recording: Recording, program: Program) -> None:
        self.recording = recording
        self.program = program
        self.rows = recording.allocations
        self.regions = recording.regions
        self.kind = self.regions.kind[self.rows.region]  # per row
        self.temporary: Mask = self.kind == RegionKind.TEMPORARY  # per row

    def region_bytes(self, which: Mask) -> int:
        """Return the total size of some regions."""
        return int(self.regions.size[which].sum())

    def bytes_of(self, kind: RegionKind) -> int:
        """Return the total size of the regions of a kind."""
        return self.region_bytes((self.regions.kind & kind) != 0)

    def not_reusable(self) -> Mask:
        """Return per region whether it is thread-local, or contains a tuple."""
        mask: Mask = (self.regions.kind & RegionKind.THREAD_LOCAL) != 0
        mask[self.rows.region[self.rows.dtype.isin({POINTER_TABLE})]] = True
        return mask

    def temporary_blocks(self) -> I64:
        """Return the temporary rows that have memory and a lifetime, by region."""
        rows = self.rows
        blocks = np.flatnonzero(self.temporary & (rows.charge > 0) & (rows.end > rows.start))
        blocks = blocks[np.argsort(rows.region[blocks], kind="stable")]
        return blocks
