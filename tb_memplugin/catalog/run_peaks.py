"""The largest peaks of runs that were read, kept after their recordings are gone."""

from __future__ import annotations

from collections.abc import Iterable

from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.catalog.listing import Listing
from tb_memplugin.logdir import HostFile, Run

Files = tuple[HostFile, ...]


class RunPeaks:
    """The largest peak of each run, while its files are those that were read. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._peaks: dict[str, tuple[Files, int]] = {}  # by run; replaced, never changed

    def get(self, run: Run) -> int | None:
        files, largest = self._peaks.get(run.name, ((), 0))
        return largest if files and files == run.files else None

    def add(self, run: Run, listing: Listing) -> None:
        """Keep the largest peak of a listing of all files of a run, unless it has none or may be incomplete."""
        if listing.recordings and not any(problem.may_pass for problem in listing.problems):
            self._peaks[run.name] = (run.files, max(peak(recording).bytes for recording in listing.recordings))

    def keep_only(self, runs: Iterable[Run]) -> None:
        """Drop the peaks of runs that are gone."""
        names = {run.name for run in runs}
        self._peaks = {name: known for name, known in list(self._peaks.items()) if name in names}
