"""The tables of a program, with the masks and sums that several parts of XProf's answer use."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording

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
