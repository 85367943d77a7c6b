"""The folders that source files may be read below: those that the user names."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tb_memplugin.errors import InputError

VARIABLE = "TB_MEMPLUGIN_SOURCE_ROOTS"  # for hosts whose command line is not ours


def checked_roots(folders: Iterable[str]) -> list[str]:
    """Return the paths of folders without links. InputError where one is no folder, or is all of the machine."""
    found = []
    for folder in folders:
        path = os.path.realpath(os.path.expanduser(folder))
        if not os.path.isdir(path):
            raise InputError("Cannot open the source root", folder, "give an existing folder with --source-root")
        if os.path.dirname(path) == path:
            raise InputError("Source root too large", folder, "give the folder of the program's source")
        found.append(path)
    return found


def roots_of_environment() -> list[str]:
    """Return the folders that the environment variable lists; those that do not exist have no files."""
    named = (part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part)
    paths = (os.path.realpath(os.path.expanduser(part)) for part in named)
    return [path for path in paths if os.path.dirname(path) != path]
