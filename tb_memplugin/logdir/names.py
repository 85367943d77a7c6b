"""Paths and names: remote or local, inside a folder, which files are profiles, and the files of an XLA dump.

XLA writes a module at several stages of its compilation, as `module_0007.jit_step.STAGE.hlo.pb`. Before the stage, a
TPU's compiler puts its build, `cl_1014260217`, and a GPU's its target, `sm_9.0a_gpu_`. With
`--xla_dump_include_timestamp`, names begin with a time. Only the stage `after_optimizations` has a buffer assignment.
"""

import os
import re
from functools import lru_cache
from typing import NamedTuple

from tb_memplugin import formats
from tb_memplugin.model.fit import RECORD

# Stores whose folders are only parts of the names of files. Their drivers take requests from several threads.
FLAT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "oss", "memory"})


def is_remote(path: str) -> bool:
    """Return whether a path is a URL, which fsspec opens."""
    return "://" in path


def is_flat_store(url: str) -> bool:
    """Return whether a path is a URL of a store in FLAT_STORES."""
    return url.partition("://")[0] in FLAT_STORES


def path_text(path: str) -> str:
    r"""Return a path as text that JSON and URLs can contain: bytes of names that are not UTF-8 become `\xff`."""
    if path.isascii():
        return path
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # a surrogate that is no byte, as in names of Windows
        return path.encode("utf-8", "backslashreplace").decode()


def is_inside(top: str, path: str) -> bool:
    """Return whether a local path, with links resolved, is the folder `top` or inside it."""
    try:
        real_top = os.path.realpath(top)
        return os.path.commonpath([real_top, os.path.realpath(path)]) == real_top
    except ValueError:  # a null byte, or another drive
        return False


def is_read_with(path: str, file: str) -> bool:
    """Return whether the local `file` is, or would be, in the logdir that `path` belongs to.

    `path` may be a logdir, or a session or a file in one. A standalone file is in a logdir only with itself.
    """
    if is_remote(path):
        return False
    real = os.path.realpath(os.path.expanduser(path))
    logdir, in_session, _ = (real + os.sep).rpartition(os.sep + os.path.join("plugins", "profile", ""))
    return is_inside(logdir or os.sep if in_session else real, file)


XPLANE = formats.XPLANE.suffixes[0]
# Programs without a profile. XProf writes `<module>.hlo_proto.pb` beside a profile that already contains the program.
HLO_PROTO = formats.HLO.suffixes
# Files that scripts write under any name, in any folder.
STANDALONE = tuple(suffix for known in formats.FORMATS for suffix in known.found)
HOSTS = (XPLANE, *STANDALONE)
READABLE = (XPLANE, *HLO_PROTO, *formats.HLO_TEXT.suffixes, *STANDALONE)
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


# Patterns are texts: `re` compiles each with the first name that needs it, and most folders have no such name.
_PROGRAM = (
    r"(?P<prefix>.*?)(?:^|\.)(?:sm_[\d.]{1,8}[a-z]?_gpu_|gfx[\w:+-]{1,60}_gpu_|[a-z]\w{0,40}_)?"
    r"after_optimizations(?:\.hlo\.pb(?:\.gz)?|-buffer-assignment\.txt|-memory-usage-report\.txt|\.txt)"
)
_MODULE = r"(?:(?P<time>\d{1,20})\.)?module_(?P<number>\d{4,18})"
_PREFIX = rf"(?:{_MODULE}(?:\.|$))?(?P<name>.*?)(?:\.cl_\d{{1,18}})?"
_OF_MODULE = rf"{_MODULE}\.(?P<name>[^.]*)"
# Stages other than the program. Files of a module may also be of a compiler pass; files that were renamed have the
# stage alone.
_STAGE = (
    r"(?:^|.*[._])(?:before_optimizations|before_config_assignment|after_spmd_partitioner|after_codegen"
    r"|(?:before|after)_buffer_assignment|oom_intermediate_module)\.hlo\.pb(?:\.gz)?"
)
_TEXT = r".*before_optimizations\.txt"
_PROTO = (".hlo.pb", ".hlo.pb.gz")
_ASSIGNMENT, _MODULE_TEXT, _USAGE_REPORT = _TEXTS = formats.HLO_TEXT.suffixes[:3]  # from the most complete one
_TARGETS = ("target_arguments.txt", "target_arguments.pb", "gpu_target_config.pbtxt")
AFTER_CODEGEN = "after_codegen.hlo.pb"  # the only file with the on-chip memory that kernels take
_REPORTS = ("-memory-usage-report.pb", "-memory-usage-report.txt", "-live-range.txt")
_BESIDE = (*_TARGETS, *_REPORTS, *(f"{name}.gz" for name in (*_TARGETS, *_REPORTS)))


class ProgramName(NamedTuple):
    """The name of a program's file: `prefix` is what the names of the files about its module begin with."""

    prefix: str
    module: str
    number: int  # -1: none
    time: int

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles from the shortest to the most specific one."""
        numbered = f"module {self.number}" if self.number >= 0 else ""
        module = self.module or f"module_{max(self.number, 0):04d}"
        specific = ", ".join(part for part in (numbered, f"time {self.time}" if self.time else "") if part)
        return (module, *(f"{module} ({part})" for part in (numbered, specific) if part), self.prefix)


@lru_cache(MAX_CACHED)
def parse_program(name: str) -> ProgramName | None:
    """Parse the name of a file with a program, after optimizations; None for any other name."""
    program = re.fullmatch(_PROGRAM, name) if name.endswith((*_PROTO, *_TEXTS)) else None
    prefix = re.fullmatch(_PREFIX, program["prefix"]) if program else None
    if program is None or prefix is None:
        return None
    return ProgramName(program["prefix"], prefix["name"], int(prefix["number"] or -1), int(prefix["time"] or 0))


def module_of(name: str) -> tuple[str, str] | None:
    """Return the key and the name of the module that a file or folder belongs to; None where it has no number."""
    found = re.match(_OF_MODULE, f"{name}.")
    return (f"{found['time'] or ''}.{found['number']}", found["name"]) if found else None


def is_stage(name: str) -> bool:
    """Return whether a file is a module at a stage without buffer assignment, as a proto."""
    if not name.endswith(_PROTO) or parse_program(name):
        return False
    return module_of(name) is not None or re.fullmatch(_STAGE, name) is not None


def is_stage_text(name: str) -> bool:
    """Return whether a file is a module as text, which has no buffer assignment itself."""
    return name.endswith(".txt") and module_of(name) is not None and re.fullmatch(_TEXT, name) is not None


@lru_cache(MAX_CACHED)
def is_dump_file(name: str) -> bool:
    """Return whether a file is part of a dump, other than a program: also what describes its target, or a report."""
    return name.endswith(_BESIDE) or is_stage(name) or is_stage_text(name)


def completeness(program: str) -> int:
    """Return the place of a program's file among those of the same program: 0 for a proto, more for texts."""
    return next((n for n, text in enumerate(_TEXTS, 1) if program.endswith(text)), 0)


def program_stem(program: str) -> str:
    """Return what the names of a program's file and of the compiler's reports about it begin with."""
    return re.sub(rf"(?<=after_optimizations)(?:\.hlo\.pb(?:\.gz)?|{_ASSIGNMENT}|{_USAGE_REPORT}|\.txt)$", "", program)


def texts_beside(program: str) -> tuple[str, ...]:
    """Return the names of the texts that complete a program as text; none for a proto, which is complete."""
    stem = program_stem(program)
    if program.endswith(_ASSIGNMENT):
        return (f"{stem}-live-range.txt", f"{stem}.txt")
    return (f"{stem}-live-range.txt",) if program.endswith(_MODULE_TEXT) else ()


def names_beside(prefix: str, program: str) -> tuple[str, ...]:
    """Return the names that files about a program may have."""
    stem = program_stem(program)
    of_module = (*_TARGETS, AFTER_CODEGEN)
    names = (*(f"{prefix}.{name}" for name in of_module), *(f"{stem}{name}" for name in _REPORTS))
    return (*names, *(f"{name}.gz" for name in names))
