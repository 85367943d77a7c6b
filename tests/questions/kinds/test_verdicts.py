"""Verdicts name a role and a source line: those with the most memory at the peak, and the line that leaks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from programs.stored import Stored
from support.servers import DEMO

from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_steps import leaks
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.source_lines import FRAMEWORK_PATH, heaviest_line, source_lines
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.kinds.verdict import complete_verdict, verdict, verdict_text
from tb_memplugin.questions.recording.sites import leaking
from tb_memplugin.sizes import bytes_of_text, percent_text


def largest(run: str, kind: str) -> Recording:
    catalog = Catalog(str(DEMO / run))
    recordings = catalog.listing_of_run(catalog.runs()[0]).recordings
    return max((each for each in recordings if each.kind == kind), key=lambda each: peak(each).bytes)


@pytest.mark.parametrize("run", ["train_step", "v5e_train_step", "h100_train_step"])
def test_the_line_with_the_most_is_that_of_a_plain_sum_over_live_rows(run: str) -> None:
    of = largest(run, "program")
    rows, at, held = of.allocations, peak(of).position, Counter[str]()
    for row in range(len(rows)):
        if rows.start[row] <= at < rows.end[row]:
            own = [f for f in of.stacks.frames(int(rows.stack[row])) if f[1] and not FRAMEWORK_PATH.search(f[1])]
            held[f"{Path(own[0][1]).name}:{own[0][2]}" if own else ""] += int(rows.charge[row])
    del held[""]
    line, size = held.most_common(1)[0]
    assert heaviest_line(of) == (line, size)


@pytest.mark.parametrize("run", ["train_step", "v5e_train_step", "h100_train_step"])
def test_the_verdict_names_the_role_with_the_most_bytes_and_its_own_line(run: str) -> None:
    of = largest(run, "program")
    rows, at, found = of.allocations, peak(of).position, verdict(of)
    live = np.flatnonzero((rows.start <= at) & (at < rows.end))
    role = max(set(roles(of)[live].tolist()), key=lambda each: int(rows.charge[live[roles(of)[live] == each]].sum()))
    mine = live[roles(of)[live] == role]
    assert found["role"].startswith(Role(role).label)
    assert found["role_bytes"] == rows.charge[mine].sum()
    held = Counter[str]()
    for row in mine.tolist():
        held[Path(source_lines(of)[row]).name] += int(rows.charge[row])
    assert held[found["line"]] == found["line_bytes"] == max(held.values())
    assert found["used_bytes"] == peak(of).bytes
    share = percent_text(found["role_bytes"], found["used_bytes"])
    assert verdict_text(found).endswith(f" \N{MIDDLE DOT} {found['role']} {share}, {found['line']}")


def test_a_program_that_does_not_fit_says_by_how_much_it_exceeds_its_limit() -> None:
    found = verdict(largest("v5e_out_of_memory", "program"))
    assert found["over_bytes"] > 0
    assert verdict_text(found) == "21.4 GiB over the limit of 15.8 GiB"


def test_sizes_of_one_unit_share_it() -> None:
    assert bytes_of_text(3 << 29, 16 << 30) == "1.50 of 16.0 GiB"
    assert bytes_of_text(3 << 19, 16 << 30) == "1.50 MiB of 16.0 GiB"


def test_the_heaviest_line_has_the_bytes_that_rows_of_the_table_have_together() -> None:
    of = largest("v5e_train_step", "program")
    most = heaviest_line(of)
    assert most is not None
    rows, at, lines = of.allocations, peak(of).position, source_lines(of)
    live = np.flatnonzero((rows.start <= at) & (at < rows.end)).tolist()
    assert most.bytes == sum(int(rows.charge[row]) for row in live if Path(lines[row]).name == most.line)


def test_a_leak_takes_the_place_of_the_line_but_not_in_an_outline() -> None:
    of = largest("leak", "allocator")
    assert verdict_text(verdict(of)) == "Leak: make_leak_demo.py:61 grows 2.00 MiB per step"
    assert complete_verdict(of) == verdict(of)
    assert verdict_text(verdict(of.outline, outline=True)).startswith("Peak ")
    assert verdict(largest("leak_mended", "allocator"))["alarm"] == ""


def test_sites_of_one_line_leak_together_and_other_lines_are_counted() -> None:
    found = leaks(largest("leak", "allocator"))
    assert found.sites is not None
    one = found.sites._replace(
        verdict=np.full(3, Verdict.LEAK, np.uint8),
        sized=np.array([True, True, False]),
        confidence=np.array([0.9, 0.2, 0.3]),
        bytes_per_step=np.array([1024.0, 1024.0, 1500.0]),
    )
    lines = ["a.py:1", "a.py:1", "a.py:1"]
    assert leaking(found._replace(sites=one), lines) == "Leak: a.py:1 grows 2.00 KiB per step."
    said = leaking(found._replace(sites=one), ["a.py:1", "b.py:2", "c.py:3"])
    assert said == "Possible leak: c.py:3 grows 1.46 KiB per step. So do 2 other lines."
    assert leaking(found._replace(sites=None), lines) == ""


def test_padding_of_more_than_half_of_the_peak_is_named() -> None:
    particles = next(r for r in Stored("neighbors_of_particles", "v5e").recordings if r.memory == "HBM")
    found = verdict(particles)
    requested = particles.allocations.requested
    live = live_rows(particles, peak(particles).position)
    assert found["padding_bytes"] == found["used_bytes"] - requested[live].sum() > 3 << 30
    assert verdict_text(found).endswith("padding 96%")
    assert "padding" not in verdict_text(verdict(largest("v5e_train_step", "program")))
