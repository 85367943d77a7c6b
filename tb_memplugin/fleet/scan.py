"""The scan of a capture, with a task for each file, and the facts of captures that are known without reading files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tb_memplugin import readers
from tb_memplugin.analysis.fleet.host_names import missing_hosts
from tb_memplugin.errors import InputError
from tb_memplugin.executors import TaskExecutor
from tb_memplugin.fleet.cache import SummaryCache, has_version
from tb_memplugin.fleet.series import Series, find_series
from tb_memplugin.fleet.series_growth import Growths, as_hosts, has_growth, read_growth
from tb_memplugin.fleet.sessions import Capture, alone, hosts_of
from tb_memplugin.fleet.summarize import failed, outline, read_programs, summarize_files, with_programs
from tb_memplugin.fleet.tasks import FilesOfRuns, FileTask, Tasks, batches, problem_text
from tb_memplugin.logdir import HostFile, Run, path_text
from tb_memplugin.model.fleet import FileSeries, FileSummary, Fleet, KnownCapture, ProgramSummary
from tb_memplugin.model.kinds import NumberedFiles
from tb_memplugin.model.recording import Recording
from tb_memplugin.numbered_names import natural_key

Done = Callable[[int, int], None]  # called with the number of files that are done, and of all files
WRITE_EVERY = 256  # the cache gets summaries in groups of this size, and keeps them when the scan is stopped


class Scan:
    """Summaries of files, from the cache or by tasks. A program that several files contain is read once."""

    def __init__(
        self,
        executor: Callable[[], TaskExecutor],
        cache: SummaryCache | None = None,
        numbered: NumberedFiles = NumberedFiles.AUTO,
    ) -> None:
        """`executor` is called when there is something to read."""
        self.executor = executor
        self.cache = cache
        self._numbered = numbered
        self.programs: dict[str, ProgramSummary] = {}
        self._asked: set[str] = set()  # programs
        self.read = 0  # files that were not in the cache

    def fleet(self, capture: Capture, done: Done = lambda count, total: None) -> Fleet:
        """Summarize all files of a capture. A file that fails is a summary with its problem."""
        return self.fleets([capture], done)[0]

    def fleets(self, captures: Sequence[Capture], done: Done = lambda count, total: None) -> list[Fleet]:
        """Summarize all files of several captures at once."""
        files = [file for capture in captures for file in capture.files]
        found: dict[str, FileSummary] = {}
        for summary in self.summaries(files):
            found[summary.path] = summary
            done(len(found), len(files))
        return self.complete(captures, found.values())

    def complete(self, captures: Sequence[Capture], found: Iterable[FileSummary]) -> list[Fleet]:
        """Return fleets from the summaries of all files, with the sizes of programs, and each series as one host."""
        summaries = {summary.path: summary for summary in with_programs(found, self.programs)}
        series = [find_series(capture.runs, summaries, self._numbered) for capture in captures]
        growths = self._growths([each for of_capture in series for each in of_capture if has_growth(each)])
        fleets = []
        for capture, of_capture in zip(captures, series, strict=True):
            own = [summaries[file.path] for file, _ in capture.files]
            fleets.append(fleet_of(capture, as_hosts(capture, own, of_capture, growths), of_capture))
        return fleets

    def _growths(self, series: Sequence[Series]) -> Growths:
        """Return the leaks over the files of each series, from the cache or by a task for each."""
        wanted = {each.fingerprint: [member.file for member in each.members] for each in series}
        found = self.cache.growths(wanted) if self.cache else []
        if lacking := wanted.keys() - {growth.fingerprint for growth in found}:
            tasks = Tasks(self.executor())
            for fingerprint in lacking:
                files = wanted[fingerprint]
                task = FileTask([(file, "") for file in files], frozenset([fingerprint]))
                tasks.submit(task, read_growth, files, fingerprint)
            new = [growth for _, result in tasks.results() if isinstance(result, list) for growth in result]
            if self.cache:
                versioned = {each for each in lacking if all(has_version(file.stamp) for file in wanted[each])}
                self.cache.put_growths(growth for growth in new if growth.fingerprint in versioned)
            found += new
        return {(growth.fingerprint, growth.device): growth for growth in found}

    def summaries(self, files: FilesOfRuns) -> Iterator[FileSummary]:
        """Yield the summary of each file, as they come; `programs` is complete at the end."""
        dumped = {file.path: file.program for file, _ in files if file.program}
        for summary in self._summaries(files):
            if program := dumped.get(summary.path):  # whose title is decided by the other files of its folder
                uses = (replace(use, module=program.module, title=program.title) for use in summary.programs)
                summary = replace(summary, programs=tuple(uses))
            yield summary

    def _summaries(self, files: FilesOfRuns) -> Iterator[FileSummary]:
        known = self.cache.files(file for file, _ in files) if self.cache else {}
        given = {file.path: (file, run) for file, run in files}
        found = [replace(summary, run=given[path][1]) for path, summary in known.items()]
        self._find_programs(found)
        yield from found
        lacking = [each for each in found if any(use.fingerprint not in self.programs for use in each.programs)]
        new = [(file, run) for file, run in files if file.path not in known]
        if new or lacking:
            yield from self._run(new, [(given[summary.path][0], summary) for summary in lacking])

    def _run(self, new: FilesOfRuns, lacking: Sequence[tuple[HostFile, FileSummary]]) -> Iterator[FileSummary]:
        """Summarize new files, and read the programs of files whose cached summaries lack some."""
        tasks = Tasks(self.executor())
        for file, summary in lacking:
            self._read_programs(tasks, file, summary)
        for batch in batches(new):
            tasks.submit(FileTask(batch), summarize_files, batch)
        unwritten: list[FileSummary] = []
        programs: list[ProgramSummary] = []
        for task, result in tasks.results():
            if task.programs:
                programs += self._add_programs(task, result)
                continue
            if not isinstance(result, list) and len(task.files) > 1:  # one of them may have ended the process
                for each in task.files:
                    tasks.submit(FileTask([each]), summarize_files, [each])
                continue
            summaries = result if isinstance(result, list) else [failed(*task.files[0], result)]
            self.read += len(summaries)
            self._find_programs(summaries)
            for (file, _), summary in zip(task.files, summaries, strict=True):
                self._read_programs(tasks, file, summary)
            unwritten += summaries
            if len(unwritten) >= WRITE_EVERY:
                self._write(unwritten, programs)
            yield from summaries
        self._write(unwritten, programs)

    def _read_programs(self, tasks: Tasks, file: HostFile, summary: FileSummary) -> None:
        """Read the programs of a file that no other task reads."""
        wanted = frozenset(use.fingerprint for use in summary.programs) - self.programs.keys() - self._asked
        if wanted:
            self._asked |= wanted
            tasks.submit(FileTask([(file, "")], wanted), read_programs, file, wanted)

    def _add_programs(self, task: FileTask, result: object) -> list[ProgramSummary]:
        """Take the programs that a task has read. Return those to store."""
        if not isinstance(result, list):
            problem = problem_text(result)
            self.programs.update((missed, ProgramSummary(missed, problem=problem)) for missed in task.programs)
            return []
        self.programs.update((program.fingerprint, program) for program in result)
        return result

    def _find_programs(self, summaries: Iterable[FileSummary]) -> None:
        """Look programs up in the cache."""
        if self.cache is None:
            return
        wanted = {use.fingerprint for summary in summaries for use in summary.programs}
        if wanted := wanted - self.programs.keys() - self._asked:
            self.programs.update(self.cache.programs(wanted))

    def _write(self, files: list[FileSummary], programs: list[ProgramSummary]) -> None:
        if self.cache is not None and (files or programs):
            self.cache.put(files, programs)
        files.clear()
        programs.clear()


def fleet_of(
    capture: Capture, summaries: Sequence[FileSummary], series: Sequence[Series] = (), is_complete: bool = True
) -> Fleet:
    """Return the fleet of a capture's summaries. Gaps in host numbers are missing hosts only if these are complete."""
    ordered = sorted(summaries, key=lambda summary: (natural_key(summary.host), summary.path))
    missing = missing_hosts(summary.host for summary in ordered) if is_complete else ()
    described = tuple(FileSeries(each.name, len(each.members), each.evidence) for each in series)
    return Fleet(capture.name, capture.sessions, tuple(ordered), tuple(missing or ()), described)


def has_several(run: Run, recordings: Iterable[Recording]) -> bool:
    """Return whether a run has several hosts, or devices to compare. Each file without recordings counts as a host."""
    by_source: dict[str, list[Recording]] = defaultdict(list)
    for recording in recordings:
        by_source[recording.source].append(recording)
    capture = alone(run)
    summaries = {file.path: outline(file, name, by_source[path_text(file.path)]) for file, name in capture.files}
    series = find_series(capture.runs, summaries)
    fleet = fleet_of(capture, as_hosts(capture, summaries.values(), series, {}), series, is_complete=False)
    memories = [device.summary.memory for device in fleet.devices]
    return len(fleet.hosts) > 1 or len(set(memories)) < len(memories)


MAX_FILES = 1024  # files of the first captures are looked up in the cache up to this number, which takes about 0.3 s


def known_captures(captures: Sequence[Capture], cache: SummaryCache | None) -> list[KnownCapture]:
    """Return captures with their known faults, in the given order. Files are not read."""
    wanted: list[HostFile] = []
    for capture in captures:
        files = [file for file, _ in capture.files]
        if len(wanted) + len(files) > MAX_FILES:
            break
        wanted += files
    summaries = cache.files(wanted) if cache else {}
    prints = {use.fingerprint for summary in summaries.values() for use in summary.programs}
    programs = cache.programs(prints) if cache and prints else {}
    return [_known(capture, summaries, programs, cache) for capture in captures]


def _known(
    capture: Capture,
    summaries: Mapping[str, FileSummary],
    programs: Mapping[str, ProgramSummary],
    cache: SummaryCache | None,
) -> KnownCapture:
    found: list[FileSummary] = []
    for file, run in capture.files:
        summary = summaries.get(file.path) or _without_reading(file)
        if summary is not None:
            found.append(replace(summary, run=run))
    known = {summary.path: summary for summary in with_programs(found, programs)}
    series = find_series(capture.runs, known)
    prints = [each.fingerprint for each in series if has_growth(each)]
    growths = {(each.fingerprint, each.device): each for each in (cache.growths(prints) if cache else ())}
    fleet = fleet_of(capture, as_hosts(capture, known.values(), series, growths), series, is_complete=False)
    by_name = dict.fromkeys(host for run in capture.runs for host in hosts_of(run))
    hosts = fleet.hosts if len(found) == len(capture.files) else tuple(by_name)
    missing = tuple(missing_hosts(hosts) or ())
    return KnownCapture(replace(fleet, missing=missing), hosts, capture.began, len(capture.files))


def _without_reading(file: HostFile) -> FileSummary | None:
    """Return the summary of a file whose name or size shows that it cannot be read; None for others."""
    problem = file.unreadable
    if not file.size and not problem:
        try:
            readers.open_file(b"", file.path, host=file.host)
        except InputError as error:
            problem = problem_text(error)
    return FileSummary(file.path, file.size, file.stamp, file.host, "", problem=problem) if problem else None
