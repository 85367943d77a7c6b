"""The registry of file formats: names of files, and what reads them.

A new format needs one entry here and its reader: logdirs are searched for its suffixes, files are opened with it, and
error texts list it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from tb_memplugin.model.kinds import RecordingKind

# The search for the needed parts of a large file; see logdir/parts.py.
ByteRange = tuple[int, int]  # begin and end
FilePiece = bytes | ByteRange  # new bytes, or a range of the file
PartWalk = Generator[ByteRange, bytes, list[FilePiece]]
PartSearch = Generator[ByteRange | PartWalk, bytes, None]


class Format(NamedTuple):
    """Files with one of the `suffixes`. Those with one of `found` are listed in any folder of a logdir.

    `opener` is `module:function`, imported on first use: `function(data, path, run=, host=)` returns the file's parts.
    `needed` is one, too, of formats with large parts that no reader uses: it finds the others of a large file; see
    logdir/parts.py.
    """

    label: str
    suffixes: tuple[str, ...]
    kind: RecordingKind
    opener: str
    found: tuple[str, ...] = ()
    max_bytes: int | None = None  # larger files are refused before they are read
    needed: str | None = None
    end_bytes: int | None = None  # only the end of a longer file is read; its opener also takes `skipped=`
    excerpts: str | None = None  # a class that finds what else is needed, as `needed`; see readers/oom_text/excerpts.py


# The error is at the end of a log. 16 MiB hold a dump of 150,000 chunks and take seconds to parse.
OOM_TEXT_BYTES = 16 << 20

MAX_PROTOBUF_BYTES = 2 << 30  # no writer of protocol buffers makes more

XPLANE = Format(
    "XPlane profile",
    (".xplane.pb",),
    RecordingKind.ALLOCATOR,  # and the compiled programs in it
    "tb_memplugin.readers.xplane:open_xplane",
    max_bytes=MAX_PROTOBUF_BYTES,
    needed="tb_memplugin.readers.xplane.needed:needed_parts",
)
HLO = Format(
    "compiled program",
    (".hlo_proto.pb", ".hlo.pb", ".hlo_proto.pb.gz", ".hlo.pb.gz"),
    RecordingKind.PROGRAM,
    "tb_memplugin.readers.hlo:open_hlo",
    max_bytes=MAX_PROTOBUF_BYTES,
)
HLO_TEXT = Format(
    "compiled program as text",
    ("-buffer-assignment.txt", "after_optimizations.txt", "-memory-usage-report.txt", ".hlo", ".hlo.txt"),
    RecordingKind.PROGRAM,
    "tb_memplugin.readers.hlo_text:open_hlo_text",
    max_bytes=512 << 20,  # text has some 500 bytes for an instruction
)

# The first format with a suffix of the file's name opens it, so longer suffixes come first.
FORMATS = (
    XPLANE,
    HLO,
    HLO_TEXT,
    Format(
        "JAX device profile",
        (".prof", ".pprof", ".pb.gz"),
        RecordingKind.DEVICE_PROFILE,
        "tb_memplugin.readers.pprof:open_pprof",
        found=(".prof", ".pprof", ".pb.gz"),
        max_bytes=MAX_PROTOBUF_BYTES,
    ),
    Format(
        "out-of-memory error",
        (".txt", ".log"),
        RecordingKind.OUT_OF_MEMORY,
        "tb_memplugin.readers.text:open_text",
        found=(".oom.txt",),
        end_bytes=OOM_TEXT_BYTES,
        excerpts="tb_memplugin.readers.oom_text.excerpts:LogExcerpts",
    ),
    Format(
        "PyTorch profile",
        (".json.gz", ".raw.gz", ".trace.json", ".memory.json", ".raw.json"),
        RecordingKind.TORCH_TIMELINE,
        "tb_memplugin.readers.torch_profiler:open_torch_profiler",
        found=(".pt.trace.json", ".pt.trace.json.gz", ".memory.json", ".memory.json.gz", ".raw.json.gz"),
    ),
    Format(
        "PyTorch snapshot",
        (".pickle", ".pkl", ".json"),
        RecordingKind.TORCH_SNAPSHOT,
        "tb_memplugin.readers.torch_snapshot:open_snapshot_or_profile",
        found=(".pickle", ".pkl", ".snapshot.json"),  # other .json files are too common
    ),
    Format(
        "device memory over time",
        (".watch",),
        RecordingKind.WATCH,
        "tb_memplugin.readers.watch:open_watch",
        found=(".watch",),
        max_bytes=256 << 20,  # capture.watch keeps its files below a few megabytes
    ),
)


def format_of(name: str) -> Format | None:
    """Return the format of a file by its name, None for an unknown one."""
    return next((found for found in FORMATS if name.endswith(found.suffixes)), None)


def describe_formats() -> str:
    """Return the suffixes of all formats, in words."""
    return "; ".join(f"{', '.join(known.suffixes)} ({known.label})" for known in FORMATS)
