"""One recording on which an analysis fails does not break the answers about the others."""

from __future__ import annotations

import inspect
import json
import logging
import pkgutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from support.recordings import Row, recording

import tb_memplugin.analysis
from tb_memplugin.analysis.isolate import each
from tb_memplugin.catalog.listing import Listing, Problem
from tb_memplugin.cli import main
from tb_memplugin.commands import check, compare, export, summary
from tb_memplugin.commands.support import output
from tb_memplugin.errors import FAILURES, ReadError
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import endpoints
from tb_memplugin.questions.export.report import report_source
from tb_memplugin.questions.run.overview import overview
from tb_memplugin.questions.run.runs import recordings as listed

GOOD = replace(recording([Row(64, 0, 2), Row(32, 1, 4)], 4), title="jit_good(1)")
ODD = replace(recording([Row(128, 0, 3)], 3), title="jit_odd(2)", source="/logdir/odd.xplane.pb")
OTHER = replace(recording([Row(16, 0, 3)], 3), title="jit_other(3)")
RUN = [ODD, GOOD, OTHER]


def analyses() -> Iterator[tuple[str, Any]]:
    """Yield the functions of the analyses whose first argument is a recording."""
    for found in pkgutil.walk_packages(tb_memplugin.analysis.__path__, "tb_memplugin.analysis."):
        module = import_module(found.name)
        for name, function in vars(module).items():
            if isinstance(function, FunctionType) and function.__module__ == found.name and not name.startswith("_"):
                first = next(iter(inspect.signature(function).parameters.values()), None)
                if first is not None and first.annotation in (Recording, "Recording"):
                    yield f"{found.name.removeprefix('tb_memplugin.analysis.')}.{name}", function


ANALYSES = dict(analyses())


@pytest.fixture(params=list(ANALYSES))
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let an analysis fail for one of the recordings, wherever it is used."""
    endpoints()
    function = ANALYSES[request.param]

    def failing(subject: Recording, *arguments: Any, **options: Any) -> Any:
        if subject.title == ODD.title:
            raise ZeroDivisionError("by a test")
        return function(subject, *arguments, **options)

    for name, module in list(sys.modules.items()):
        if name.startswith("tb_memplugin."):
            for attribute, value in list(vars(module).items()):
                if value is function:
                    monkeypatch.setattr(module, attribute, failing)
    return str(request.param)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands read these recordings."""
    for command in (check, compare, export, output, summary):
        monkeypatch.setattr(command, "listing_of", lambda *_: Listing(list(RUN)))


def test_the_overview_and_the_list_show_the_others(broken: str) -> None:
    answer = overview(RUN)
    titles = [row["title"] for row in answer["rows"]]
    assert titles == ["jit_good(1)", "jit_other(3)"] or sorted(titles) == sorted(r.title for r in RUN)
    told = [problem for problem in answer["problems"] if problem["file"] == ODD.source]
    assert bool(told) == (len(titles) < 3 or not any(p["title"] == ODD.title for p in programs(answer)))
    assert all("jit_odd(2), HBM: cannot be analyzed (ZeroDivisionError: by a test)" in p["text"] for p in told)
    assert {p["title"] for p in programs(answer)} >= {"jit_good(1)", "jit_other(3)"}
    shown = listed(report_source(RUN, RUN).runs, "run", "")
    assert {s["title"] for s in shown["recordings"]} >= {"jit_good(1)", "jit_other(3)"}
    assert len(shown["recordings"]) + len(shown["problems"]) == 3


def programs(answer: Any) -> list[Any]:
    return [program for place in answer["together"] for program in place["programs"]]


def test_commands_answer_about_the_others(
    broken: str, files: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> tuple[int, str, bool]:
        status = main(list(arguments))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out, "jit_odd(2), HBM: cannot be analyzed" in err

    status, out, told = run("summary", "x", "--json")
    assert status == 0 and len(json.loads(out)["recordings"]) == (2 if told else 3)
    status, out, told = run("check", "x", "--max-peak", "1GiB", "--json")
    assert status == (2 if told else 0) and len(json.loads(out)["checked"]) == (2 if told else 3)
    status, out, _ = run("check", "x", "--max-peak", "1B", "--json")
    assert status == 1 and {"jit_good(1)", "jit_other(3)"} <= {b["title"] for b in json.loads(out)["broken"]}
    status, out, told = run("compare", "x", "y", "--json")
    assert status == (2 if told else 0) and len(json.loads(out)["comparisons"]) == (2 if told else 3)
    for suffix in ("csv", "json"):
        status, out, told = run("export", "x", "--to", str(tmp_path / f"rows.{suffix}"))
        assert status == (2 if told else 0) and ("2 recordings" if told else "3 recordings") in out
    status, out, _ = run("explain", "x", "--recording", "jit_good")
    assert status == 0 and "jit_good" in out


def test_the_analyses_are_found() -> None:
    names = list(ANALYSES)
    assert "usage.live_bytes.peak" in names and "ownership.roles.roles" in names and len(names) > 30


def test_check_does_not_pass_where_a_recording_could_not_be_checked(
    files: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd_fails(monkeypatch, "tb_memplugin.questions.compare.budget.required_bytes", lambda r: 1)
    assert main(["check", "x", "--max-peak", "1GiB"]) == 2
    assert "/logdir/odd.xplane.pb: jit_odd(2), HBM: cannot be analyzed" in capsys.readouterr().err


def test_a_recording_above_the_budget_is_named_where_its_explanation_fails(
    files: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd_fails(monkeypatch, "tb_memplugin.questions.compare.budget.explanation", lambda r: [])
    assert main(["check", "x", "--max-peak", "100B", "--json"]) == 1
    (above,) = json.loads(capsys.readouterr().out)["broken"]
    assert above["title"] == ODD.title and "cannot be analyzed" in above["explanation"][0]


def odd_fails(monkeypatch: pytest.MonkeyPatch, name: str, otherwise: Callable[[Recording], Any]) -> None:
    def function(subject: Recording) -> Any:
        return 1 // 0 if subject.title == ODD.title else otherwise(subject)

    monkeypatch.setattr(name, function)


def test_a_failure_is_logged_once_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    odd = replace(ODD)  # nothing has been logged about this one
    odd_fails(monkeypatch, "tb_memplugin.questions.run.overview.headroom", overview.__globals__["headroom"])
    monkeypatch.setattr(FAILURES, "disabled", False)  # as in servers
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert len(overview([odd, GOOD])["problems"]) == 1
    (record,) = caplog.records
    assert record.exc_info is not None and record.exc_info[0] is ZeroDivisionError
    assert odd.id in record.getMessage()


@pytest.mark.parametrize("error", [MemoryError(), ReadError("Cannot read", "x", "try again")])
def test_failures_of_the_moment_leave_no_recording_out(error: Exception) -> None:
    def fails(_: Recording) -> None:
        raise error

    with pytest.raises(type(error)):
        each(RUN, fails)


def test_files_that_cannot_be_read_and_recordings_that_cannot_be_analyzed_are_in_one_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unreadable = Listing(list(RUN), [Problem("/logdir/b.pb", "damaged")])
    monkeypatch.setattr(summary, "listing_of", lambda *_: unreadable)
    odd_fails(
        monkeypatch,
        "tb_memplugin.questions.recording.summary.summary",
        lambda r: {"id": r.id, "axis": r.axis, "caveats": []},
    )
    assert main(["summary", "x", "--json"]) == 0
    assert [problem["file"] for problem in json.loads(capsys.readouterr().out)["problems"]] == [
        "/logdir/b.pb",
        ODD.source,
    ]
