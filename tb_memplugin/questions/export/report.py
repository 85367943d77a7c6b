"""Answers that an offline report contains: those that the page requests about each recording and each run.

Each endpoint declares which of its answers a report stores (questions/asking/endpoint.py). Where that is one answer for
every window, row or position, the page computes each from it (payload/report.ts).
"""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import Recording
from tb_memplugin.numbered_names import counted_host
from tb_memplugin.questions.asking.endpoint import Endpoint, Query, endpoints
from tb_memplugin.questions.asking.source import NO_CANDIDATES, FitOutcomes, RunJson, RunRecordings, Source


@dataclass(frozen=True)
class ReportRecordings:
    """The recordings and runs that a report contains; `every` is the list that they were chosen from."""

    contained: Sequence[Recording]
    every: Sequence[Recording]
    logdir: str = ""
    candidates: FitOutcomes = NO_CANDIDATES

    def runs(self) -> list[RunJson]:
        members: dict[str, list[Recording]] = {}
        for recording in self.contained:
            members.setdefault(_run_name(recording), []).append(recording)
        return [
            {
                "name": name,
                "hosts": sorted({one.host for one in found}),
                "host_count": len({counted_host(one.host, one.kind.is_snapshot) for one in found if one.host}),
                "modified_ns": None,
                "peak_bytes": max(0, *(peak(one).bytes for one in found)),
                "by_host": False,
                "sessions": 1,
            }
            for name, found in sorted(members.items(), key=lambda run: run[0], reverse=True)
        ]

    def run(self, name: str, host: str | None = None) -> RunRecordings:
        found = [recording for recording in self.contained if _run_name(recording) == name]
        return RunRecordings(found, partial=len(found) < sum(_run_name(other) == name for other in self.every))

    def recording(self, recording_id: str) -> Recording:
        for recording in self.contained:
            if recording.id == recording_id:
                return recording
        raise InputError("Unknown recording", recording_id, "choose one that the report contains")

    def file_of(self, recording_id: str) -> list[Recording]:
        recording = self.recording(recording_id)
        return [other for other in self.run_of(recording) if other.source == recording.source]

    def run_of(self, recording: Recording) -> list[Recording]:
        return [other for other in self.every if other.run == recording.run]

    def programs(self, modules: Collection[str]) -> list[Recording]:
        return [r for r in self.every if r.program is not None and r.program.module in modules]

    def fit(self) -> FitOutcomes:
        return self.candidates


def report_source(
    contained: Sequence[Recording], every: Sequence[Recording], candidates: FitOutcomes = NO_CANDIDATES
) -> Source:
    """Return what a report answers about. It has no fleet, uploads or source files."""
    parts = ReportRecordings(contained, every, candidates=candidates)
    return Source(parts, parts)


@dataclass(frozen=True)
class StoredAnswer:
    """An answer of a report: its endpoint, the page's query, and where the recordings come from."""

    endpoint: Endpoint
    query: Query
    source: Source

    @property
    def key(self) -> str:
        """Return the key that payload/report.ts looks an answer up by."""
        return "&".join([self.endpoint.route, *sorted(f"{name}={value}" for name, value in self.query.items())])

    def content(self) -> bytes:
        """Return the answer. InputError where there is none."""
        return self.endpoint.report_answer(self.query, self.source)


def answers_of_recording(recording: Recording, source: Source) -> Iterator[StoredAnswer]:
    """Yield all answers about one recording."""
    for endpoint in _with_parameter("id"):
        if endpoint.report is not None and endpoint.report.applies(recording):
            for query in endpoint.report_queries({"id": recording.id}):
                yield StoredAnswer(endpoint, query, source)


def answers_of_runs(source: Source) -> Iterator[StoredAnswer]:
    """Yield the list of runs, and all answers about each run."""
    for endpoint in endpoints().values():
        if endpoint.report is not None and not endpoint.parameters:
            yield StoredAnswer(endpoint, {}, source)
    for endpoint in _with_parameter("run"):
        for run in source.runs.runs():
            for query in endpoint.report_queries({"run": run["name"]}):
                yield StoredAnswer(endpoint, query, source)


def _with_parameter(name: str) -> list[Endpoint]:
    """List the endpoints of a report that are about what this parameter names."""
    return [
        endpoint
        for endpoint in endpoints().values()
        if endpoint.report is not None and any(parameter.name == name for parameter in endpoint.parameters)
    ]


def _run_name(recording: Recording) -> str:
    """Return the recording's run; a file outside any run stands for one."""
    return recording.run or os.path.basename(recording.source) or recording.source
