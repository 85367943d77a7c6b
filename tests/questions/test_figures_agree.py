"""Each figure that is in several answers is the same in all of them, for every real profile.

Answers are those of the page, the terminal, `check`, comparisons, advice and XProf's format. A figure is a name with
the places that it is in; all places of one name have one value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.payload_decoder import decode
from support.profiles import DAMAGED
from support.servers import DATA, DEMO, TESTS

from tb_memplugin.analysis.ownership.classification import Classification
from tb_memplugin.analysis.usage.headroom import headroom
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.formats import format_of
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import endpoints
from tb_memplugin.questions.asking.inputs import Call
from tb_memplugin.questions.asking.source import Source
from tb_memplugin.questions.compare.budget import budget
from tb_memplugin.questions.compare.comparison import CompareBy, compared
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.export.report import report_source
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.questions.run.overview import overview
from tb_memplugin.questions.xprof.memory_profile import memory_profile
from tb_memplugin.questions.xprof.memory_viewer import memory_viewer
from tb_memplugin.regex import Regex

MIB = 2**20
SIZE = re.compile(r"\d+(?:\.\d+)? (?:B|[KMGT]iB)")
ADVISED = {"train_step", "scan_remat", "leak"}  # other programs' advice has tests of its own, and takes longer

Fact = tuple[str, str, Any]  # figure, place and value


def _stored(folder: Path) -> list[Path]:
    """Return the profiles below a folder, dumps and runs as one each."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and format_of(str(path)) is not None)
    return [path for path in files if DAMAGED not in path.parents]


def _one_per_program(paths: Sequence[Path]) -> list[Path]:
    """Return one file per program: `lm.v4.hlo.pb.gz` and `lm.v5e.hlo.pb.gz` differ in the chip only."""
    return list({path.name.partition(".")[0]: path for path in paths if path.suffix == ".gz"}.values())


OTHERS = [path for name in ("oom_texts", "pprof_answers", "xla_dumps") for path in _stored(TESTS / "data" / name)]
PROFILES = [*_stored(DEMO), *_one_per_program(_stored(TESTS / "data" / "programs")), *OTHERS]
SHARED = [path for name in ("xplane", "hlo", "pprof", "torch_snapshot", "torch_trace") for path in _stored(DATA / name)]


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: "/".join(path.parts[-2:]))
def test_stored_profiles(path: Path) -> None:
    check(path)


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("path", SHARED, ids=lambda path: "/".join(path.parts[-4:]))
def test_real_profiles(path: Path) -> None:
    check(path)


def check(path: Path) -> None:
    recordings = listing_of_path(str(path)).recordings
    source = report_source(recordings, recordings)
    failed = []
    for recording in recordings:
        found: dict[str, dict[str, Any]] = defaultdict(dict)
        for figure, place, value in facts(recording.load(), source, advised=not ADVISED.isdisjoint(path.parts)):
            found[figure][place] = value
        failed += [f"{recording.id} {figure}: {places}" for figure, places in found.items() if _differ(places)]
    failed += [f"{figure}: {places}" for figure, places in of_the_run(recordings).items() if _differ(places)]
    assert not failed, "\n".join(failed)


def _differ(places: dict[str, Any]) -> bool:
    first, *others = places.values()
    return any(value != first for value in others)


def facts(recording: Recording, source: Source, *, advised: bool) -> Iterator[Fact]:
    summarized = summary(recording)
    (row,) = overview([recording])["rows"]
    view = first_view(recording, source)
    top = summarized["peak_position"]
    yield from _of_summary("summary", summarized)
    yield from _of_summary("overview", row)
    yield "needed_bytes", "headroom", headroom(recording).needed
    if view is not None:
        yield from _of_first_view(view[0], view[1], summarized)
    rows = decode(_ask(source, "rows", id=recording.id))[1]
    live = {at: _live(rows["rows"], at) for at in {top, recording.length // 2}}
    for at, which in live.items():
        if recording.length:
            yield from _of_position(recording, source, rows, at, which)
    yield from _of_peak(recording, rows["rows"], live[top], top)
    yield from _of_check(recording, row)
    yield from _of_xprof(recording)
    if advised:
        yield from _of_advice(_json(source, "advice", id=recording.id))


def _of_summary(place: str, answer: Any) -> Iterator[Fact]:
    for key in ("peak_bytes", "peak_position", "reserved_bytes", "capacity_bytes"):
        yield key, place, answer[key]
    yield "caveats", place, answer["caveats"]


def _of_first_view(meta: dict[str, Any], tables: Any, summarized: Any) -> Iterator[Fact]:
    yield from _of_summary("first view", meta["recording"])
    yield "caveats", "caveats of the first view", meta["caveats"]
    yield "peak_position", "first view's peak", meta["peak"]["position"]
    figures = {figure["key"]: figure["bytes"] for figure in meta["figures"]}
    for key, size in figures.items():
        yield f"figure {key}", "first view", size
    if figures.get("live_peak") is not None:
        yield "peak_bytes", "figures", figures["live_peak"]
    if "reserved" in figures:
        yield "reserved_bytes", "figures", figures["reserved"]
    if "capacity" in figures:
        yield "capacity_bytes", "figures", figures["capacity"]
    if "usage" in tables and len(tables["usage"]["live_max"]):
        yield "peak_bytes", "usage chart", int(max(tables["usage"]["live_max"]))
    if "verdict" in meta:  # a device profile's first view has none
        # Kernels reserve on-chip memory, and failures ask for some, without anything that is live.
        used = "peak_bytes" if summarized["peak_bytes"] else "needed_bytes"
        yield used, "verdict", meta["verdict"]["used_bytes"]
    yield "peak_bytes", "first view's summary", summarized["peak_bytes"]


def _of_position(recording: Recording, source: Source, tables: Any, at: int, live: Any) -> Iterator[Fact]:
    rest = int(tables["program"].get("unexplained", [0] * recording.length)[at])
    charge = np.array(tables["rows"]["charge"], dtype=np.int64)
    name = f"live at {at}"
    yield name, "table", int(charge[live].sum()) + rest
    explained = explain(recording, None if at == summary(recording)["peak_position"] else f"#{at}")
    if explained["at"]["position"] == at:
        yield name, "explain", explained["at"]["bytes"]
        for key in ("model", "source", "function"):
            if explained[key]:
                yield name, f"explain {key}", sum(n["bytes"] for n in explained[key] if n["depth"] == 0)
        yield name, "explain roles", sum(role["bytes"] for role in explained["roles"]) + rest
        if "groups" in explained:
            parts = (*explained["groups"], explained["before"], explained["unexplained"])
            yield name, "explain sites", sum(part["bytes"] for part in parts)
    for by in CompareBy:
        answer = compared(recording, recording, at, at, by)
        yield name, f"compare a by {by}", answer["a"]["bytes"]
        yield name, f"compare b by {by}", answer["b"]["bytes"]
        yield name, f"steps a by {by}", sum(step["bytes_a"] for step in answer["steps"])
        yield name, f"steps b by {by}", sum(step["bytes_b"] for step in answer["steps"])
        if not answer["left_out_bytes"] and answer["entries_total"] == len(answer["entries"]):
            yield name, f"entries by {by}", sum(entry["bytes_a"] for entry in answer["entries"]) + rest
    for kind in Classification:
        _, tree = decode(_ask(source, "tree", id=recording.id, by=kind.value))
        # Rows without a node are below a node of the page's own.
        leaf = np.array(tree["leaf"]["node"], dtype=np.int64)[live]
        assert (leaf < len(tree["tree"]["parent"])).all()
        yield name, f"tree by {kind}", int(charge[live].sum()) + rest


def _of_peak(recording: Recording, rows: Any, live: Any, top: int) -> Iterator[Fact]:
    explained = explain(recording)
    for figure in explained["figures"]:
        yield f"figure {figure['key']}", "explain", figure["bytes"]
    yield "peak_bytes", "explain", explained["at"]["bytes"]
    yield "peak_position", "explain", explained["at"]["position"]
    yield "peak_bytes", "explain's summary", explained["recording"]["peak_bytes"]
    shares = [part["share"] for key in ("roles", "model", "source", "function") for part in explained[key]]
    yield "shares above 1", "explain", [share for share in shares if share > 1 + 1e-9]
    yield "shares above 1", "expected", []


def _of_check(recording: Recording, row: Any) -> Iterator[Fact]:
    (checked,) = budget([recording], 2**62, Regex(".*", "recording"))["checked"]
    yield "needed_bytes", "check", checked["needed_bytes"]
    yield "needed_bytes", "overview", row["needed_bytes"]
    broken = budget([recording], checked["needed_bytes"] - 1, Regex(".*", "recording"))["broken"]
    yield "needed_bytes", "check's report", broken[0]["needed_bytes"]
    if row["headroom_bytes"] is not None and recording.out_of_memory is None:
        yield "headroom", "overview", row["headroom_bytes"]
        yield "headroom", "capacity - needed", row["capacity_bytes"] - row["needed_bytes"]


def _of_advice(answer: Any) -> Iterator[Fact]:
    yield "peak_bytes", "advice", answer["peak_bytes"]
    for piece in answer["advice"]:
        name = f"advice {piece['title']}"
        yield name, "before", piece["before_bytes"]
        yield name, "after and saving", piece["after_bytes"] + piece["saving_bytes"]
        if piece["saving_of"] == "peak":
            yield "peak_bytes", name, piece["before_bytes"]


def _of_xprof(recording: Recording) -> Iterator[Fact]:
    if recording.program is not None and recording.kind.has_program:
        answer = memory_viewer([recording], recording.program.memory_space)
        if "peakHeapMib" in answer:
            yield "peak_bytes", "XProf's memory viewer", round(answer["peakHeapMib"] * MIB)
            yield "peak_bytes", "XProf's series", round(max(answer["heapSizes"]) * MIB)
    elif recording.kind.runs_programs and recording.axis is Axis.TIME and recording.length:
        (profile,) = memory_profile([recording])["memoryProfilePerAllocator"].values()
        stats = profile["profileSummary"]["peakStats"]
        yield "peak_bytes", "XProf's memory profile", int(stats.get("peakBytesInUse", 0))


def of_the_run(recordings: Sequence[Recording]) -> dict[str, dict[str, Any]]:
    """Return the figures of a run in its overview, against those of its recordings."""
    answer = overview(recordings)
    found: dict[str, dict[str, Any]] = {"rows": {"overview": len(answer["rows"]), "recordings": len(recordings)}}
    for place in answer["together"]:
        programs = place["programs"]
        held = sum(program["held_bytes"] - program["again_bytes"] for program in programs)
        sums = held + max(program["temporary_bytes"] for program in programs)
        reserved = {row["id"]: row["reserved_bytes"] for row in answer["rows"]}
        found[f"together in {place['memory']}"] = {"total": place["bytes"], "sum": sums}
        for program in programs:
            parts = program["held_bytes"] + program["temporary_bytes"]
            found[f"reserved {program['id']}"] = {"together": parts, "row": reserved[program["id"]]}
    return found


def first_view(recording: Recording, source: Source) -> tuple[dict[str, Any], Any] | None:
    if recording.kind.has_call_graph:
        return None
    route = "memory_profile" if recording.axis is Axis.TIME else "memory_viewer"
    return decode(_ask(source, route, id=recording.id))


def _live(rows: Any, at: int) -> Any:
    start, end, charge = (np.array(rows[name], dtype=np.int64) for name in ("start", "end", "charge"))
    return np.flatnonzero((start <= at) & (at < end) & (charge > 0))


def _ask(source: Source, route: str, **query: str) -> bytes:
    answer = endpoints()[route].answer(Call(query, source))
    assert isinstance(answer, bytes)
    return answer


def _json(source: Source, route: str, **query: str) -> Any:
    return endpoints()[route].answer(Call(query, source))
