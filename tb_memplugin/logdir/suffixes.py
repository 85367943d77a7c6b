"""Suffixes of the files that are read, and the host name in a file's name."""

from __future__ import annotations

from functools import lru_cache

from tb_memplugin import formats

XPLANE = formats.XPLANE.suffixes[0]
# Programs without a profile. XProf writes `<module>.hlo_proto.pb` beside a profile that already contains the program.
HLO_PROTO = formats.HLO.suffixes
# Files that scripts write under any name, in any folder.
STANDALONE = tuple(suffix for known in formats.FORMATS for suffix in known.found)
HOSTS = (XPLANE, *STANDALONE)
READABLE = (XPLANE, *HLO_PROTO, *STANDALONE)
RECORD = "fit.json"  # of a fit's candidate, beside its compiled program
MAX_CACHED = 1 << 16  # names: hosts have the same in all runs, and a server lists folders for each request
NO_MODULE = "NO_MODULE.hlo_proto.pb"  # an empty file, by which XProf marks profiles without a program


def is_program(path: str) -> bool:
    """Return whether a file is a compiled program, by its name."""
    return path.endswith(HLO_PROTO)


@lru_cache(MAX_CACHED)
def is_read(name: str) -> bool:
    """Return whether a file is read: a profile or the record of a fit, by its name."""
    return name.endswith(READABLE) or name == RECORD


@lru_cache(MAX_CACHED)
def host_name(file_name: str) -> str:
    """Return the host in a profile's name, or the name of a standalone file; empty for programs without a profile."""
    for suffix in HOSTS:
        if file_name.endswith(suffix):
            return file_name[: -len(suffix)]
    return ""
