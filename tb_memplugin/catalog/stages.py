"""Programs at stages of compilation without buffer assignment: one line for all that a listing skips."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tb_memplugin import logdir
from tb_memplugin.sizes import counted


@dataclass(frozen=True, slots=True)
class SkippedStages:
    """Stages without buffer assignment of one folder or file.

    `modules`: names of modules that were dumped at no other stage; `path`: the first file of one.
    """

    path: str
    count: int
    modules: tuple[str, ...]
    numbered: bool = False  # the files of the folder are an XLA dump's

    def without(self, programs: Collection[str]) -> SkippedStages:
        """Return the stages where modules of these names have a program, in any file of the run.

        An XLA dump may have several modules of a name, which its files number: theirs are paired by number.
        """
        return self if self.numbered else replace(self, modules=tuple(m for m in self.modules if m not in programs))


def unexplained(stages: Sequence[SkippedStages]) -> str:
    """Return the reason why a run with stages alone has no program, and the remedy."""
    modules = [module for skipped in stages for module in skipped.modules]
    return logdir.without_program(modules, as_proto=any(skipped.count for skipped in stages))


def skipped_text(stages: Sequence[SkippedStages]) -> str:
    """Return the one line about all skipped stages of some runs; empty where there are none."""
    count = sum(skipped.count for skipped in stages)
    skipped = f"{counted(count, 'stage')} without buffer assignment skipped." if count else ""
    return f"{skipped} {missing_text(stages)}".strip()


def missing_text(stages: Sequence[SkippedStages]) -> str:
    """Return a line about the modules that have no program; empty where there are none."""
    modules = [module for skipped in stages for module in skipped.modules]
    if not modules:
        return ""
    return f"No program of {logdir.listed_names(modules)}: compile to the end, and dump with {logdir.FLAGS}."
