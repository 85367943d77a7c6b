"""Readers of profile files: one package per format. The registry of formats chooses one by the file's name."""

from importlib import import_module
from typing import cast

from tb_memplugin.errors import InputError
from tb_memplugin.formats import FORMATS, describe_formats, format_of
from tb_memplugin.readers.common.part import FilePart


def open_file(
    data: bytes | memoryview, path: str, *, run: str = "", host: str = "", skipped: int = 0
) -> list[FilePart]:
    """List the parts of a file, by its name, without parsing their contents.

    `skipped`: the bytes of the file before `data`, for formats of which only the end is read.
    Raises InputError, naming the file, where the format is unknown or the list of parts is damaged.
    """
    if not len(data):
        raise InputError("the file is empty", path, "the profile was not fully written; profile again")
    if (known := format_of(path)) is None:
        remedy = f"pass a logdir, a run, or a file with one of these suffixes: {describe_formats()}"
        raise InputError("unknown file type", path, remedy)
    module, _, function = known.opener.partition(":")
    end = {} if known.end_bytes is None else {"skipped": skipped}
    parts = getattr(import_module(module), function)(data, path, run=run, host=host, **end)
    return cast("list[FilePart]", parts)


def load_readers() -> None:
    """Import the readers of all formats, which are otherwise imported with the first file of each."""
    for known in FORMATS:
        import_module(known.opener.partition(":")[0])
