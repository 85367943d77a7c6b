"""Suffixes of the files that are read, and the host name in a file's name."""

from __future__ import annotations

XPLANE = ".xplane.pb"
# Programs without a profile. XProf writes `<module>.hlo_proto.pb` beside a profile that already contains the program.
HLO_PROTO = (".hlo_proto.pb", ".hlo.pb")
# Files that scripts write under any name, in any folder: JAX device profiles, PyTorch snapshots, traces and timelines
# of its profiler, texts of errors. Plain .json is left out: it is too common.
STANDALONE = (
    ".prof", ".pprof", ".pb.gz", ".pickle", ".pkl", ".snapshot.json", ".pt.trace.json", ".pt.trace.json.gz",
    ".memory.json", ".memory.json.gz", ".raw.json.gz", ".oom.txt",
)  # fmt: skip
READABLE = (".pb", *STANDALONE)
NO_MODULE = "NO_MODULE.hlo_proto.pb"  # an empty file, by which XProf marks profiles without a program


def host_name(file_name: str) -> str:
    """Return the host in a profile's name, or the name of a standalone file; empty for programs without a profile."""
    suffixes = (XPLANE, *STANDALONE)
    return next((file_name.removesuffix(suffix) for suffix in suffixes if file_name.endswith(suffix)), "")
