"""What a page without a server knows of a recording: every answer that its tab asks for, whatever is clicked.

What the page asks for a window, a row or a position at a time is one answer here, of all of them: the page works each
out of that (payload/report/offline_answers.ts).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tb_memplugin.analysis.linking.runtime_to_program import link_to_programs, running_intervals
from tb_memplugin.analysis.ownership.classification import Classification
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.page import (
    advice,
    device_profile,
    leaks,
    memory_profile,
    memory_viewer,
    overview,
    runtime_to_program,
    tree,
)
from tb_memplugin.views.shared.payload import encode
from tb_memplugin.views.shared.summary import summary

MAX_DRAWN = 60  # functions in one picture of a call graph, as the page asks for


class Question(NamedTuple):
    """A route, what is asked of it, and the answer's bytes once they are wanted."""

    route: str
    query: dict[str, str | int]
    answer: Callable[[], bytes]

    @property
    def key(self) -> str:
        """As payload/report/embedded.ts writes it."""
        return "&".join([self.route, *sorted(f"{name}={value}" for name, value in self.query.items())])


def questions(recording: Recording, beside: Sequence[Recording], of_run: Sequence[Recording]) -> Iterator[Question]:
    """All that is asked about one recording. `beside` is what its file holds, `of_run` its run, itself in both."""

    def ask(route: str, answer: Callable[[], bytes], **more: str | int) -> Question:
        return Question(route, {"id": recording.id, **more}, answer)

    yield ask("rows", lambda: memory_viewer.rows(recording.complete))
    yield ask("details", lambda: _details(recording.complete, beside))
    yield ask("advice", lambda: _json(advice.advice(recording)))
    for by, merge in product(Classification, (False, True)):
        yield ask("tree", partial(_tree, recording, by, merge), by=by.value, merge=int(merge))
    if recording.kind.has_call_graph:
        yield ask("device_profile", lambda: _json(device_profile.device_profile(recording, beside)))
        yield ask("growth", lambda: _json(device_profile.series(recording, of_run)))
        yield from (ask("callgraph", answer, **query) for query, answer in _call_graphs(recording, beside))
        return
    timed = recording.axis is Axis.TIME
    view = memory_profile if timed else memory_viewer
    yield ask("memory_profile" if timed else "memory_viewer", lambda: view.first_view(recording))
    if recording.length > memory_viewer.FIRST_BUCKETS:  # else the first view has every position
        yield ask("usage", lambda: view.usage(recording, 0, recording.length, recording.length))
    if timed:
        yield ask("leaks", lambda: _json(leaks.findings(recording.complete)))
        yield ask("joins", lambda: _json(_joins(recording.complete, beside)))


def questions_of_runs(held: Sequence[Recording], every: Sequence[Recording]) -> Iterator[Question]:
    """The lists to pick from, and the overview of each run; `held` are those of `every` that the report is about."""
    names = sorted({_run_name(recording) for recording in held}, reverse=True)  # as a server lists them
    runs = [{"name": name, "hosts": sorted({r.host for r in held if _run_name(r) == name})} for name in names]
    yield Question("runs", {}, partial(_json, {"logdir": "", "runs": runs, "message": None}))
    for name in names:
        recordings = [recording for recording in held if _run_name(recording) == name]
        listing = {"recordings": [*map(summary, recordings)], "problems": [], "empty": {}}
        told = overview.overview(recordings)
        if len(recordings) < sum(_run_name(recording) == name for recording in every):
            told["together"] = []  # what was in a memory together is known of whole runs only
        yield Question("recordings", {"run": name}, partial(_json, listing))
        yield Question("overview", {"run": name}, partial(_json, told))


def _run_name(recording: Recording) -> str:
    """A file that is in no run stands for one."""
    return recording.run or os.path.basename(recording.source) or recording.source


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False).encode()


def _tree(recording: Recording, by: Classification, merge: bool) -> bytes:
    return tree.tree(recording.complete, by, merge)


def _call_graphs(
    recording: Recording, beside: Sequence[Recording]
) -> Iterator[tuple[dict[str, str | int], Callable[[], bytes]]]:
    """Each granularity, with the frames of frameworks and without, of the device and of all; of no expression."""
    devices = [other for other in beside if other.kind.has_call_graph]
    for by, fold, whole in product(device_profile.Granularity, (True, False), (False, True)):
        refine = device_profile.Refine(focus="", ignore="", hide="", fold=fold)

        def answer(
            by: device_profile.Granularity = by, refine: device_profile.Refine = refine, whole: bool = whole
        ) -> bytes:
            of = devices if whole else [recording]
            return _json(device_profile.call_graph(of, None, by, refine, MAX_DRAWN))

        query: dict[str, str | int] = {"by": by.value, "focus": "", "ignore": "", "hide": ""}
        yield {**query, "fold": int(fold), "whole": int(whole)}, answer


def _details(recording: Recording, beside: Sequence[Recording]) -> bytes:
    """What api/details knows of every row beyond api/rows: stacks as a tree, and what programs planned in it.

    Tables `rows` (leaves in `frames`, an entry of meta's `planned`, -1 for none) and `frames`.
    """
    rows, stacks = recording.allocations, recording.stacks
    plans, plan = _planned(recording, beside)
    none = np.full(len(rows), -1, dtype=np.int32)
    return encode(
        {"planned": plans},
        {
            "rows": {
                "stack": rows.stack,
                "freed_stack": none if recording.free_stack is None else recording.free_stack,
                "planned": plan,
            },
            "frames": {
                "parent": stacks.parent,
                "function": stacks.function,
                "file": stacks.file,
                "line": stacks.line,
            },
        },
    )


def _programs(beside: Sequence[Recording]) -> list[Recording]:
    return [other for other in beside if other.kind.has_program]


def _planned(recording: Recording, beside: Sequence[Recording]) -> tuple[list[Any], Any]:
    """What is planned in each region that any row was joined to, and which of these each row has."""
    which = np.full(len(recording.allocations), -1, dtype=np.int32)
    if not recording.kind.runs_programs:
        return [], which
    programs = _programs(beside)
    joined = link_to_programs(recording, programs)
    known = np.flatnonzero(joined.program >= 0)
    pairs = np.stack([joined.program[known], joined.region[known]])
    _, first, inverse = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    which[known] = inverse.reshape(-1)
    return [memory_profile.planned(recording, int(known[i]), programs) for i in first], which


def _joins(recording: Recording, beside: Sequence[Recording]) -> dict[str, Any]:
    """The answers of api/joins over the axis: answer number `answer[i]` is that of positions from `start[i]` on."""
    programs = _programs(beside)
    stretches = running_intervals(recording, programs)
    first: dict[tuple[int, ...], int] = {}  # where each set of programs runs first; a dict keeps their order
    for position, now in stretches:
        first.setdefault(tuple(now), position)
    numbers = {now: number for number, now in enumerate(first)}
    return {
        "start": [position for position, _ in stretches],
        "answer": [numbers[tuple(now)] for _, now in stretches],
        "answers": [runtime_to_program.joins(recording, programs, position) for position in first.values()],
    }
