"""A candidate's compilation as a task: a function of plain data that runs in any process, on any machine.

A step may be that of a script with its command line, as `train.py:__main__` or `MODULE:__main__`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tb_memplugin.errors import InputError
from tb_memplugin.fit.knobs import Varied
from tb_memplugin.model.fit import Candidate, Knobs, Outcome
from tb_memplugin.model.kinds import COMPILE_SECONDS

MAIN = "__main__"


@dataclass(frozen=True)
class ScriptCall:
    """The command line of a script, with `{batch}` in the place of a knob, and the function that is its step."""

    arguments: tuple[str, ...] = ()
    jit: str = ""  # empty for the function with the most work
    fakes: tuple[str, ...] = ()  # functions that return ones, with their types
    assumed: tuple[str, ...] = ()  # jitted functions, with the whole numbers that they return

    def filled(self, knobs: Iterable[tuple[str, object]]) -> "ScriptCall":
        """Return the call with the values of the knobs in their places."""
        found = self
        for name, value in knobs:
            place, text = f"{{{name}}}", str(value)
            found = replace(
                found,
                arguments=tuple(each.replace(place, text) for each in found.arguments),
                fakes=tuple(each.replace(place, text) for each in found.fakes),
                assumed=tuple(each.replace(place, text) for each in found.assumed),
            )
        return found

    def numbers(self) -> dict[str, int]:
        """Return the assumed numbers by the names of functions. InputError for one that is none."""
        found = {}
        for text in self.assumed:
            name, _, number = text.partition("=")
            if not name or not number.strip().isdecimal():
                raise InputError("No whole number of a function", text, "write --assume FUNCTION=NUMBER")
            found[name.removeprefix("jit_")] = int(number)
        return found

    def require_places(self, varied: Sequence[Varied], fixed: Knobs) -> None:
        """Raise an InputError for a knob that the command line has no place for."""
        for name in (*(one.name for one in varied), *(name for name, _ in fixed)):
            if not any(f"{{{name}}}" in each for each in (*self.arguments, *self.fakes, *self.assumed)):
                text = f"write {{{name}}} in its command line, as in: -- --{name}={{{name}}}"
                raise InputError("The script has no place for a knob", name, text)


def is_script(step: str) -> bool:
    """Return whether a step is a file without a function."""
    return step.endswith(".py") and os.path.isfile(step)


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
