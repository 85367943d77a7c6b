"""Pieces of a file's content that are kept after the rest was read."""

from __future__ import annotations


def own(piece: memoryview) -> memoryview:
    """Return a piece that does not keep the rest of its file in memory: a copy, unless it is most of the file."""
    return piece if piece.nbytes > memoryview(piece.obj).nbytes // 2 else memoryview(bytes(piece))
