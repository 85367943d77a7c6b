"""A TPU's stack is linked to the program whose temporaries it holds, and programs that ran are listed."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.allocators import Block, allocator
from support.recordings import recording
from support.servers import DATA

from tb_memplugin.analysis.linking import MAX_MORE_BYTES, link_to_programs, stack_of_program
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.model.kinds import RecordingKind, RegionKind, SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Text
from tb_memplugin.questions.kinds import joins as runtime_joins
from tb_memplugin.questions.kinds.joins import _of_every_position, joins

GIB = 2**30


def program(title: str, temporary: int, memory: str = "HBM") -> Recording:
    made = recording([], 1, [(temporary, RegionKind.TEMPORARY), (512, RegionKind.OUTPUT)])
    return dataclasses.replace(made, title=title, memory=memory)


def with_stack(stack: list[int], ran: list[str]) -> Recording:
    made = allocator([Block("a", 64, i, None) for i in range(len(stack))], steps=len(stack))
    assert made.reported is not None
    n = made.length
    reserved = np.resize(np.array(stack, np.int64), n)
    spans = NamedSpans(
        Text.of(ran), np.full(len(ran), SpanKind.EXECUTION, np.uint8), np.arange(len(ran)), np.arange(len(ran)) + 1
    )
    return dataclasses.replace(
        made,
        kind=RecordingKind.ALLOCATOR,
        reported=dataclasses.replace(made.reported, reserved=reserved),
        spans=spans if ran else None,
    )


PROGRAMS = [program("jit_f(1)", 20 * GIB), program("jit_g(2)", 4 * GIB), program("jit_h(3)", 21 * GIB)]


@pytest.mark.parametrize(
    ("stack", "title"),
    [(20 * GIB, "jit_f(1)"), (20 * GIB + 2**24, "jit_f(1)"), (4 * GIB, "jit_g(2)"), (4 * GIB - 1, ""), (8 * GIB, "")],
)
def test_the_stack_belongs_to_the_program_that_ran_and_fills_it_best(stack: int, title: str) -> None:
    found = joins(with_stack([0, stack], ["f", "g"]), PROGRAMS, 1)["stack"]
    assert (found["title"] if found else "") == title
    assert found is None or found["bytes"] == stack


def test_a_small_stack_is_not_that_of_a_program_with_almost_no_temporaries() -> None:
    small = program("jit_f(1)", 512)
    assert stack_of_program(with_stack([MAX_MORE_BYTES // 8], ["f"]), [small]).program.tolist() == [-1]


def test_without_a_stack_or_in_another_memory_nothing_is_linked() -> None:
    assert joins(with_stack([0, 0], ["f"]), PROGRAMS, 1)["stack"] is None
    in_host = [program("jit_f(1)", 20 * GIB, "Host")]
    assert joins(with_stack([20 * GIB], ["f"]), in_host, 0)["stack"] is None
    assert joins(with_stack([20 * GIB], ["f"]), PROGRAMS, -1)["stack"] is None


def test_programs_that_ran_are_listed_without_an_allocation_most_runs_first() -> None:
    listed = joins(with_stack([0, 0], ["g", "f", "g", "unknown"]), PROGRAMS, -1)["programs"]
    assert [(each["title"], each["runs"], each["bytes"]) for each in listed] == [("jit_g(2)", 2, 0), ("jit_f(1)", 1, 0)]


def test_a_report_has_the_stack_of_every_position() -> None:
    made = with_stack([0, 20 * GIB, 20 * GIB, 4 * GIB, 0, 20 * GIB], ["f", "g"])
    every = _of_every_position(made, PROGRAMS)
    for at in range(-1, made.length):
        answer = every["answers"][every["answer"][int(np.searchsorted(every["start"], at, "right")) - 1]]
        assert answer["stack"] == joins(made, PROGRAMS, at)["stack"]


def test_a_report_of_more_stacks_than_it_lists_has_none_rather_than_that_of_another_position(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime_joins, "MAX_STACKS", 2)
    made = with_stack([20 * GIB, 4 * GIB, 20 * GIB + 1], ["f", "g"])
    every = _of_every_position(made, PROGRAMS)
    assert len(every["answers"]) > 1 and all(answer["stack"] is None for answer in every["answers"])


def test_programs_are_linked_once_for_all_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def link(*linked: Any) -> Any:
        calls.append(linked)
        return link_to_programs(*linked)

    monkeypatch.setattr(runtime_joins, "link_to_programs", link)
    _of_every_position(with_stack([0, 20 * GIB, 4 * GIB, 20 * GIB + 1], ["f", "g"]), PROGRAMS)
    assert len(calls) == 1


@pytest.mark.skipif(not DATA.is_dir(), reason="the real profiles are not beside the repository")
def test_the_stack_of_a_real_tpu_profile_holds_the_temporaries_of_its_program() -> None:
    catalog = Catalog(str(DATA / "xplane" / "xprof_tpu_inference_2_old"))
    recordings = catalog.listing_of_run(catalog.runs()[0]).recordings
    cores = [each for each in recordings if each.kind == "allocator"]
    assert len(cores) == 4
    for core in cores:
        assert core.reported is not None
        at = int(np.argmax(core.reported.reserved))
        answer = joins(core, [each for each in recordings if each.kind == "program"], at)
        assert answer["stack"] is not None
        assert answer["stack"]["title"] == "jit_f(12190760917235803885)"
        assert answer["stack"]["bytes"] - answer["stack"]["temporary_bytes"] == 2**24
        assert {"jit_f(12190760917235803885)": 100, "jit__psum(9646411105960254074)": 3}.items() <= {
            each["title"]: each["runs"] for each in answer["programs"]
        }.items()
