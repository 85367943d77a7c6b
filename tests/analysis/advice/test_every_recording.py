"""Properties of all advice, on every program and allocator, including damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.allocator_planes import REAL, recordings_of
from support.servers import DATA, DEMO
from support.subjects import both_ways, every_subject, recordings
from werkzeug.test import Client

from tb_memplugin.analysis.advice import ADVISERS, Advice, advise, model
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.commands.support.output import listing_of
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.recording import advice as view

TORCH = sorted(path for path in DATA.glob("torch_*/*") if path.is_file())
each_profile = pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)


@pytest.fixture
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the thresholds of advice, because the programs here are small."""
    monkeypatch.setattr(model, "MIN_BYTES", 1)
    monkeypatch.setattr(model, "MIN_SHARE", 2**40)


def check(recording: Recording) -> None:
    for found in [one for ask in ADVISERS for one in ask(recording)]:
        check_piece(recording, found)


def check_piece(recording: Recording, found: Advice) -> None:
    top = peak(recording).bytes
    assert 0 < found.saving_bytes <= found.saving.expected <= found.saving.at_most <= found.saving.before
    assert found.saving_bytes <= found.saving.up_to <= found.saving.at_most
    if found.kind is not model.AdviceKind.FRAGMENTATION:
        assert found.saving.before == top
    size = recording.allocations.size[found.rows]
    if found.kind not in (
        model.AdviceKind.FRAGMENTATION,
        model.AdviceKind.PADDING,
    ):  # for these, the saving is the unused part of the rows
        assert found.bytes == size.sum()
    assert len(np.unique(found.rows)) == len(found.rows)
    assert (np.diff(size) <= 0).all()
    assert found.title and found.sentence.endswith(".") and found.change
    assert "  " not in found.sentence


@every_subject
@both_ways
def test_programs(name: str, use_traces: bool, however_small: None) -> None:
    for recording in recordings(name, use_traces):
        check(recording)


@each_profile
def test_allocators(path: Path, however_small: None) -> None:
    for recording in recordings_of(path).values():
        check(recording)


@pytest.mark.parametrize("path", TORCH, ids=lambda path: path.name)
def test_tensors(path: Path, however_small: None) -> None:
    for recording in listing_of(str(path)).recordings:
        check(recording)


@every_subject
def test_the_largest_saving_for_the_lost_time_comes_first(name: str) -> None:
    for recording in recordings(name, True):
        pieces = advise(recording)
        worth = [piece.saving_bytes / (piece.lost_time + model.LITTLE_TIME) for piece in pieces]
        assert worth == sorted(worth, reverse=True)
        assert all(piece.saving_bytes >= model.MIN_BYTES for piece in pieces)
        for piece in pieces:
            assert piece.longer is None or -1 < piece.longer.least <= piece.longer.most
            assert (piece.lost_time == 0) or piece.cost is not model.Cost.NONE


def test_of_equal_savings_the_cheapest_comes_first_and_then_the_easiest() -> None:
    rows, saved = np.empty(0, dtype=np.int64), model.Saving(4, 2, 2, 2)
    kinds = [model.AdviceKind.OFFLOAD, model.AdviceKind.OVERSIZED, model.AdviceKind.SCHEDULE, model.AdviceKind.DONATION]
    pieces = [Advice(kind, "", "", "", rows, 0, saved) for kind in kinds]
    assert [found.kind for found in model.in_order(pieces)] == kinds[::-1]


def test_the_page_and_the_terminal_say_the_same() -> None:
    (recording,) = recordings("stored:train_step-jit_train_step(0)", True)
    answer = view.advice(recording)
    lines = list(view.lines(view.advice(recording)))
    assert answer["peak_bytes"] == peak(recording).bytes
    assert len(answer["advice"]) == len(advise(recording)) > 1
    for found, said in zip(answer["advice"], advise(recording), strict=True):
        listed = [row for first, last in found["rows"] for row in range(first, last + 1)]
        assert listed == sorted(said.rows.tolist())
        assert found["rows_total"] == len(listed) > 0
    for found in answer["advice"][: view.MAX_LINES]:
        for text in (found["title"], found["sentence"], *found["change"].splitlines()):
            assert any(text in line for line in lines)
    assert lines[0].startswith("Advice, each change")
    saved = "  \N{MINUS SIGN}280 MiB (up to \N{MINUS SIGN}312 MiB), 37% of the peak  "
    assert lines[2].startswith(f"{saved}Compute in bf16")


def test_where_nothing_helps_nothing_is_said() -> None:
    (recording,) = recordings("jax:sort", True)
    assert view.advice(recording)["advice"] == []
    assert not list(view.lines(view.advice(recording)))


def test_over_http() -> None:
    catalog = Catalog(str(DEMO))
    client = Client(MemoryApp(catalog))
    (recording,) = [one for one in catalog.listing("train_step/cpu").recordings if "train_step" in one.title]
    answer = client.get("/api/advice", query_string={"id": recording.id})
    assert answer.json == json.loads(json.dumps(view.advice(recording)))
    assert client.get("/api/advice", query_string={"id": "nobody"}).status_code == 404
