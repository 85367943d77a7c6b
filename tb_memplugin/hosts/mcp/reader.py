"""The recordings of a logdir, by names in it. A name selects among the files that a search found, and opens none."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace

from tb_memplugin import logdir
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.fit_records import FitRecords
from tb_memplugin.catalog.listing import Listing, merge
from tb_memplugin.errors import InputError
from tb_memplugin.logdir import Run
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.selectors import Chooser, choose
from tb_memplugin.questions.compare.comparison import Pair
from tb_memplugin.questions.compare.pairs import matched_pairs

MAX_NAMED = 10  # runs in an error


class LogdirReader:
    """The recordings of a logdir, by the names of its runs, folders and files. Methods may be called from any thread.

    InputError where the logdir cannot be opened, or a name selects nothing.
    """

    def __init__(self, root: str) -> None:
        if not logdir.is_remote(root) and not os.path.isdir(os.path.expanduser(root)):
            raise InputError("Not a folder", root, "give the folder that was passed to jax.profiler.trace")
        self.root = root
        self.catalog = Catalog(root)

    def listing(self, name: str = "", wanted: str | None = None) -> Listing:
        """List the recordings that a name selects, largest peak first; an empty name selects all.

        `wanted`: the id of a recording, or a part of it. If it is a whole id, only its run is read.
        """
        runs = self.runs(name)
        own = [run for run in runs if (wanted or "").startswith(f"{run.name}|")]
        with ExitStack() as counted:
            for run in own or runs:  # the files of all runs are counted first, so that the progress never falls
                counted.enter_context(self.catalog.progress.files(run.name, run.files))
            return merge(self.catalog.listing_of_run(run) for run in own or runs)

    def recording(self, name: str, wanted: str | None, chooser: Chooser = choose) -> tuple[Recording, Listing]:
        """Return the recording that is asked for, by default that with the largest peak, and what was read."""
        listing = self.listing(name, wanted)
        return chooser(listing.recordings, wanted, name, listing.problems), listing

    def pairs(self, a: str, b: str, wanted: str) -> list[Pair]:
        """Return the matching recordings of two names, of those whose ids contain a text; or the two with these ids."""
        if "|" in a and "|" in b:
            return [(self.recording("", a)[0], self.recording("", b)[0])]
        return matched_pairs((a, b), [self.listing(name) for name in (a, b)], wanted)

    def fits(self, name: str = "") -> FitRecords:
        """Return the candidates of fits that a name selects, and the records that cannot be read."""
        path = inner_path(name)
        found = self.catalog.fit()
        if not path:
            return found
        outcomes = tuple(one for one in found.outcomes if f"{one.run}/".startswith(f"{path}/"))
        if not outcomes:
            self.runs(name)  # raises where nothing has this name
        return replace(found, outcomes=outcomes)

    def name_of(self, file: str) -> str:
        """Return the name of a file in the logdir."""
        top = self.root.rstrip("/") if logdir.is_remote(self.root) else os.path.realpath(os.path.expanduser(self.root))
        return logdir.path_text(file.removeprefix(top).replace(os.sep, "/").strip("/"))

    def runs(self, name: str) -> list[Run]:
        """Return the runs that a name selects, with their files. InputError for none."""
        path = inner_path(name)
        runs = self.catalog.runs()
        chosen = [part for run in runs if (part := self._part(run, path)).files]
        if not chosen:
            named = ", ".join(run.name for run in runs[:MAX_NAMED])
            more = f", and {len(runs) - MAX_NAMED:,} more" if len(runs) > MAX_NAMED else ""
            raise InputError("Nothing of that name in the logdir", name, f"the runs are {named}{more}")
        return chosen

    def _part(self, run: Run, path: str) -> Run:
        """Return the run with the files that the path selects: all of them, or none, if it names a run or folder."""
        if not path or f"{run.name}/".startswith(f"{path}/"):
            return run
        below = (file for file in run.files if f"{self.name_of(file.path)}/".startswith(f"{path}/"))
        return run._replace(files=tuple(below))


def inner_path(name: str) -> str:
    """Return a name without `.` and slashes at its ends. InputError where it leads out of the logdir."""
    outward = name.startswith(("/", "\\", "~")) or os.path.splitdrive(name)[0] or "://" in name
    if outward or ".." in name.replace("\\", "/").split("/"):
        raise InputError("Not a name in the logdir", name, "give a run, a folder or a file, relative to the logdir")
    return "/".join(part for part in name.split("/") if part not in ("", "."))
