"""A candidate's compilation as a task: a function of plain data that runs in any process, on any machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tb_memplugin.fit.script.call import ScriptCall
from tb_memplugin.model.fit import Candidate, Outcome
from tb_memplugin.model.kinds import COMPILE_SECONDS


@dataclass(frozen=True)
class Limits:
    """The time and the resident memory that a compilation may take; `bytes` is None without a limit."""

    seconds: float = COMPILE_SECONDS
    bytes: int | None = None


@dataclass(frozen=True)
class Sources:
    """Files by their paths, in a folder for each folder that Python imports from: `0/fit_gpt.py`, `1/model/vit.py`."""

    step: str  # FILE.py:FUNCTION in these folders, or MODULE:FUNCTION
    roots: int
    files: tuple[tuple[str, bytes], ...]
    working: int = 0  # the number of the folder in which the step runs


@dataclass(frozen=True)
class CompileTask:
    """A candidate with the limits and the mode of its compilation."""

    candidate: Candidate
    limits: Limits = field(default_factory=Limits)
    uses_cache: bool = True
    sources: Sources | None = None  # where the step is not in the file system
    pickled: bytes = b""  # the step, where it is not in a file
    of_torch: bool = False  # trace a step of PyTorch, in place of compiling one of JAX
    script: ScriptCall | None = None  # the step is that of a script, which runs as it is
    to_end: bool = False  # compile beyond the assignment of memory, because code and kernels need memory as well


@dataclass(frozen=True)
class Compiled:
    """The outcome of a task, and the files of its run: the program, and the description of its target."""

    outcome: Outcome
    files: Mapping[str, bytes] = field(default_factory=dict)
    is_cached: bool = False
