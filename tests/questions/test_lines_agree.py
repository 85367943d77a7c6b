"""Each row has one source line, the user's innermost, in every answer that names it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs.stored import FOLDER
from programs.targets import GPU_HOSTS
from questions.test_figures_agree import OTHERS, SHARED
from support.servers import DEMO

from tb_memplugin.analysis.fleet.peaks import site_name
from tb_memplugin.analysis.ownership.source_lines import (
    base_name,
    heavy_lines,
    named_for_line,
    of_rows,
    source_lines,
    user_frames,
)
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.compare.comparison import CompareBy, compared
from tb_memplugin.questions.explain.buffers import buffers
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_text import lines as explain_lines
from tb_memplugin.questions.recording.columns import EXPORTED, ChosenRows
from tb_memplugin.questions.recording.sites import line_text
from tb_memplugin.questions.recording.stack_texts import stack_texts


def _program(path: Path) -> tuple[str, bool]:
    """Return the program of a dump, and whether it is for a GPU. Dumps for two TPUs differ in the chip only."""
    name, target, *_ = path.name.split(".")
    return name, target in GPU_HOSTS


STORED = list({_program(path): path for path in sorted(FOLDER.glob("*.hlo.pb.gz"))}.values())
TOP = 20


def test_a_buffer_of_a_librarys_layer_is_explained_by_the_line_that_calls_the_layer() -> None:
    (recording, *_) = listing_of_path(str(FOLDER / "linen_lm.v5e.hlo.pb.gz")).recordings
    explained = explain(recording)
    assert any("flax" in group["stack"][0]["file"] for group in explained["buffers"] if group["stack"])
    assert "/flax/" not in "\n".join(explain_lines(explained))


@pytest.mark.parametrize("path", [*STORED, DEMO, *OTHERS], ids=lambda path: path.name)
def test_stored_profiles(path: Path) -> None:
    check(path)


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("path", SHARED, ids=lambda path: "/".join(path.parts[-4:]))
def test_real_profiles(path: Path) -> None:
    check(path)


def check(path: Path) -> None:
    for recording in listing_of_path(str(path)).recordings:
        loaded = recording.load()
        if len(loaded.allocations) and loaded.length and loaded.out_of_memory is None:
            lines = source_lines(loaded)
            for row, place, text in named(loaded):
                assert base_name(lines[row]) in text, (loaded.id, row, place, lines[row], text)
            assert largest_lines(loaded) == lines_of_rows(loaded), loaded.id


def named(recording: Recording) -> Iterator[tuple[int, str, str]]:
    """Yield the largest rows at the peak with each answer that names their lines."""
    rows = live_rows(recording, peak(recording).position)[:TOP]
    explained = explain(recording)
    in_terminal = "\n".join(explain_lines(explained))
    sources = EXPORTED["source"].cells(ChosenRows(recording, rows))
    assert isinstance(sources, Text)
    for row, line in zip(rows.tolist(), sources.tolist(), strict=True):
        yield row, "page and export", line
        yield row, "page's stack", stack_texts(recording)[row]
        yield row, "sentence", line_text(recording, row)
        yield row, "fleet", site_name(recording, row)
    for group in [*explained.get("buffers", ()), *explained.get("groups", ())]:
        yield group["row"], "explain", group["source"]
        if "buffers" in explained:
            yield group["row"], "explain in a terminal", in_terminal
    for found in buffers(recording, Asked("", TOP))["buffers"]:
        yield found["row"], "buffers", found["source"]
    for entry in compared(recording, recording, None, None, CompareBy.SOURCE)["entries"]:
        if entry["row_b"] is not None:
            yield entry["row_b"], "compare", entry["source"]


def largest_lines(recording: Recording) -> dict[str, int]:
    """Return the lines of `explain`, the headline and the Overview."""
    return {found.line: found.bytes for found in heavy_lines(recording, peak(recording).position, None)[0]}


def lines_of_rows(recording: Recording) -> dict[str, int]:
    """Return the bytes per line of the rows that have a line of the user, or are named after one."""
    rows, lines = live_rows(recording, peak(recording).position), source_lines(recording)
    own = of_rows(user_frames(recording), recording.allocations.stack[rows]) >= 0
    found = Counter[str]()
    for row, is_own, is_named in zip(rows.tolist(), own, named_for_line(recording)[rows], strict=True):
        name = lines[row] if is_own else recording.allocations.name[row] if is_named else ""
        found[name] += int(recording.allocations.charge[row])
    return {name: size for name, size in found.items() if name and size}
