"""Texts of any name, or of none: a compiled program as text, or else an out-of-memory error or a log."""

from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.hlo_text import open_hlo_text, starts_program
from tb_memplugin.readers.oom_text import open_oom_text


def open_text(
    data: bytes | memoryview, path: str, *, run: str = "", host: str = "", skipped: int = 0
) -> list[FilePart]:
    """Return the one part of a text. `skipped`: the bytes before `data`."""
    if starts_program(data):
        return open_hlo_text(data, path, run=run, host=host)
    return open_oom_text(data, path, run=run, host=host, skipped=skipped)


def read_text(data: bytes | memoryview, *, run: str = "", source: str, skipped: int = 0) -> list[Recording]:
    """Read the recordings of a text. Raises InputError where it has neither a program nor an error."""
    return [recording for part in open_text(data, source, run=run, skipped=skipped) for recording in part.read()]
