"""The tables of docs/json.md, compared with what the commands print."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.changed import changed_logdir
from support.fleets import GIB, fleet_of_peaks
from support.in_process import no_processes as no_processes
from support.markdown import anchors, section, sections
from support.schemas import schema_name, validate
from support.servers import DEMO, REPOSITORY, TESTS
from support.watch_files import saw_tooth, watch_bytes
from werkzeug.test import Client

from benchmarks.pods.pod import Pod, write_trend
from benchmarks.pods.truth import Faults
from tb_memplugin import schemas
from tb_memplugin.analysis.fleet.answer import FleetAnswer
from tb_memplugin.catalog import dumps
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.cli import COMMANDS, main
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.questions.fleet.capture import capture_json
from tb_memplugin.questions.fleet.devices import COLUMNS
from tools import generate_json_docs

PAGE = REPOSITORY / "docs" / "json.md"
RUNS = sorted(folder for folder in DEMO.iterdir() if folder.is_dir())
TEXTS = sorted((TESTS / "data" / "oom_texts").glob("*.txt"))
TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "null": type(None),
}


@cache  # of thousands of objects
def documented(heading: str) -> Mapping[str, str]:
    """Return the keys of an object and their types, with those of the object that it extends."""
    found = section(PAGE, heading)
    keys: Mapping[str, str] = {}
    if "All keys of [" in found.text:
        keys = documented(found.text.partition("All keys of [")[2].partition("]")[0])
    return {**keys, **{row[0].strip("`"): row[1] for row in found.tables[0]}}


def check(value: Any, kind: str, where: str, seen: set[str]) -> None:
    """Fail where a value is not of a documented type; record the keys of objects that were seen."""
    if kind.startswith("list of "):
        if value is None and kind.endswith(" or null"):
            return
        assert isinstance(value, list), where
        for part in value:
            check(part, kind.removeprefix("list of "), f"{where}[]", seen)
    elif kind.startswith("map of "):
        assert isinstance(value, dict), where
        for part in value.values():
            check(part, kind.removeprefix("map of "), f"{where}.*", seen)
    elif kind.startswith("["):
        if value is None and kind.endswith(" or null"):
            return
        check_object(value, kind[1:].partition("]")[0], where, seen)
    else:
        assert any(isinstance(value, TYPES[each]) for each in kind.split(" or ")), f"{where} is {value!r}, not {kind}"


def check_object(value: Any, heading: str, where: str, seen: set[str]) -> None:
    keys = documented(heading)
    required = {key for key in keys if not key.endswith("?")}
    allowed = {"omitted", *(key.rstrip("?") for key in keys)}
    assert required <= value.keys() <= allowed, f"{where} has other keys than {heading}"
    for key, kind in keys.items():
        if key.rstrip("?") in value:
            seen.add(f"{heading}: {key}")
            check(value[key.rstrip("?")], kind, f"{where}.{key.rstrip('?')}", seen)


@pytest.fixture
def print_json(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> Any:
        assert main([*arguments, "--json"]) in (0, 1)
        answer = json.loads(capsys.readouterr().out)
        validate(answer, schema_name(arguments))
        return answer

    return run


def all_keys(heading: str) -> Iterator[str]:
    """Yield every key of an object and of the objects below it, further questions left out."""
    for key, kind in documented(heading).items():
        yield f"{heading}: {key}"
        if "[" in kind and "Further question" not in kind:
            yield from all_keys(kind.partition("[")[2].partition("]")[0])


@pytest.fixture
def partly_damaged(tmp_path: Path) -> Path:
    """A folder with a device profile and a damaged one."""
    profile = (DEMO / "device_profile" / "memory.prof").read_bytes()
    (tmp_path / "a.prof").write_bytes(profile)
    (tmp_path / "b.prof").write_bytes(b"damaged")
    return tmp_path


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == generate_json_docs.generate(), "run `make schemas`"


LONG_LIVED = {"serve", "xprof", "mcp"}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_that_ends_has_json_and_a_schema(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert ("--json" in capsys.readouterr().out) is (command not in LONG_LIVED) is (command in schemas.names())
    assert command not in LONG_LIVED or f"`{command}`" in section(PAGE, "Every answer").text


def test_summary(print_json: Any, monkeypatch: pytest.MonkeyPatch, partly_damaged: Path) -> None:
    seen = set[str]()
    monkeypatch.setattr(dumps, "MAX_PROGRAMS", 2)
    for path in [partly_damaged, *RUNS, *TEXTS, TESTS / "data" / "xla_dumps" / "tpu_v5e"]:
        check_object(print_json("summary", str(path)), "summary --json", path.name, seen)
    assert seen >= set(all_keys("summary --json"))


def test_explain(print_json: Any, partly_damaged: Path, tmp_path: Path) -> None:
    seen = set[str]()
    named = {("cuda:0", name): [700 << 20] * 60 for name in ("pool", "phase train")}
    watched = tmp_path / "host0_7.watch"
    watched.write_bytes(watch_bytes({"cuda:0": saw_tooth(60)}, named=named))
    check_object(print_json("explain", str(watched)), "explain --json", watched.name, seen)
    answer = print_json("explain", str(partly_damaged))
    check_object(answer, "explain --json", "partly damaged", seen)
    assert "problems" not in print_json("explain", str(partly_damaged), "--recording", answer["recording"]["id"])
    for path in [*RUNS, *TEXTS, TESTS / "data" / "xla_dumps" / "tpu_v5e_kernels"]:
        for recording in listing_of_path(str(path)).recordings[:2]:
            answer = print_json("explain", str(path), "--recording", recording.id)
            check_object(answer, "explain --json", path.name, seen)
    # In the demo, no program owns an allocation of an allocator.
    assert {
        key for key in all_keys("explain --json") if not key.startswith(("Program at a position:", "Stack at"))
    } <= seen


def test_buffers_and_advice(print_json: Any) -> None:
    seen = set[str]()
    for path in [*RUNS, *TEXTS]:
        for recording in listing_of_path(str(path)).recordings[:2]:
            place = (str(path), "--recording", recording.id)
            check_object(print_json("buffers", *place), "buffers --json", path.name, seen)
            check_object(print_json("buffers", *place, "--match", "step"), "buffers --json", path.name, seen)
            check_object(print_json("advice", *place), "advice --json", path.name, seen)
            if len(recording.allocations):
                check_object(print_json("buffers", *place, "--row", "0"), "buffers --row --json", path.name, seen)
    for heading in ("buffers --json", "advice --json", "buffers --row --json"):
        assert seen >= set(all_keys(heading))


def test_times(print_json: Any) -> None:
    seen = set[str]()
    for path in [DEMO / "leak", DEMO / "v5e_train_step", TESTS / "data" / "xla_dumps" / "tpu_v5e_text"]:
        for recording in listing_of_path(str(path)).recordings:
            if recording.kind.has_program:
                answer = print_json("times", str(path), "--recording", recording.id)
                check_object(answer, "times --json", path.name, seen)
    assert seen >= set(all_keys("times --json"))


def test_errors(capsys: pytest.CaptureFixture[str]) -> None:
    seen = set[str]()
    for call in (
        ["summary", "/nowhere"],
        ["explain"],
        ["explain", str(DEMO), "--at", "x"],
        ["summary", "x", "--top=0"],
        ["fit", "step.py:step", "--budget=x"],
    ):
        try:
            status = main([*call, "--json"])
        except SystemExit as wrong:
            status = int(wrong.code or 0)
        printed = capsys.readouterr()
        answer = json.loads(printed.out)
        assert status == 2 and printed.err.count("\n") == 1 and answer["error"]["what"] in printed.err
        check_object(answer, "Errors", " ".join(call), seen)
    assert seen >= set(all_keys("Errors"))


@pytest.mark.parametrize("command", ["explain", "buffers", "advice", "compare", "check", "export", "fit", "baseline"])
def test_the_error_of_a_damaged_file_names_the_damage(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (logs := tmp_path / "logs").mkdir()
    (logs / "b.prof").write_bytes(b"damaged")
    assert main(["summary", str(logs), "--json"]) == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    options = {"compare": [str(logs)], "check": ["--max-peak=1GiB"], "export": [f"--to={tmp_path / 'a.csv'}"]}
    options["baseline"] = [f"--write={tmp_path / 'memory.json'}"]
    assert main([command, str(logs), *options.get(command, []), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["where"], error["remedy"]) == (problem["file"], problem["text"])


@pytest.mark.parametrize("by", ["role", "model", "source"])
def test_compare(print_json: Any, by: str) -> None:
    seen = set[str]()
    for a, b in (("leak", "leak_mended"), ("train_step", "scan_remat")):
        answer = print_json("compare", str(DEMO / a), str(DEMO / b), "--by", by)
        check_object(answer, "compare --json", f"{a} {b}", seen)
    assert {key for key in all_keys("compare --json") if not key.startswith(("Caveat:", "Problem:"))} <= seen


def test_check(print_json: Any, partly_damaged: Path) -> None:
    seen = set[str]()
    for path in [partly_damaged, *RUNS, *TEXTS]:
        check_object(print_json("check", str(path), "--max-peak", "1MiB"), "check --json", path.name, seen)
    assert seen >= set(all_keys("check --json"))


def test_check_of_a_baseline(print_json: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "memory.json"
    logdir = changed_logdir("recomputed", tmp_path)
    for options in ([], ["--write", str(file)]):
        check_object(print_json("baseline", str(logdir), *options), "baseline --json", "baseline", set())
    content = json.loads(file.read_text())
    missing = {**content["recordings"][0], "name": "jit_evaluate", "arguments": []}
    file.write_text(json.dumps({**content, "recordings": [*content["recordings"], missing]}))
    logdir = tmp_path / "now"
    for name in ("base", "scan"):
        changed_logdir(name, logdir)
    (logdir / "damaged.prof").write_bytes(b"damaged")
    capsys.readouterr()
    assert main(["check", str(logdir), "--baseline", str(file), "--json"]) == 1
    seen, answer = set[str](), json.loads(capsys.readouterr().out)
    assert answer["added"] and answer["missing"] and answer["problems"]
    check_object(answer, "check --baseline --json", "now", seen)
    baseline = changed_logdir("small_batch", tmp_path)
    print_json("baseline", str(baseline), "--write", str(file))
    later = changed_logdir("recomputed", tmp_path / "later")
    check_object(print_json("check", str(later), "--baseline", str(file)), "check --baseline --json", "later", seen)
    assert seen >= set(all_keys("check --baseline --json"))


def test_skill_and_schema(print_json: Any, tmp_path: Path) -> None:
    for call in (("skill", "show"), ("skill", "install", str(tmp_path))):
        check_object(print_json(*call), "skill --json", "skill", set())
    check_object(print_json("schema"), "schema --json", "schema", set())


def test_fit(print_json: Any) -> None:
    seen = set[str]()
    step = f"{TESTS / 'fit' / 'step.py'}:step"
    answer = print_json("fit", step, "--on", "cpu:1", "--vary", "batch=8:64:8", "--budget", "1GiB")
    check_object(answer, "fit --json", "searched", seen)
    step = f"{TESTS / 'fit' / 'changed_steps.py'}:by_shapes"
    answer = print_json("fit", step, "--on", "cpu:1", "--vary", "batch=64:256:64", "--budget", "1GiB", "--try")
    assert answer["tried"]
    check_object(answer, "fit --json", "tried", seen)
    step = f"{TESTS / 'fit' / 'step.py'}:step"
    answer = print_json("check", "--fit", step, "--on", "cpu:1", "--max-peak", "1MiB")
    check_object(answer, "check --fit --json", "checked", seen)
    answer = print_json("plan", step, "--on", "cpu:1", "--vary", "remat=none,full", "--price", "v5e=1.2")
    check_object(answer, "plan --json", "planned", seen)
    answer = print_json("fit", str(DEMO / "v5e_train_step"))
    check_object(answer, "fit --json", "recorded", seen)
    assert seen >= {key for key in all_keys("fit --json") if not key.startswith(("Problem:", "Caveat:"))} | set(
        all_keys("check --fit --json")
    )


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A logdir with a capture that has every fault."""
    logdir = tmp_path_factory.mktemp("pod")
    Pod(24, 2, 0.5, faults=Faults(outliers=1, leaks=1, missing=1, damaged=1, other_programs=1)).write(logdir)
    return logdir


@pytest.mark.slow
@pytest.mark.usefixtures("no_processes")
def test_fleet(print_json: Any, pod: Path) -> None:
    seen = set[str]()
    check_object(print_json("fleet", str(pod)), "fleet --json", "pod", seen)
    check_object(print_json("fleet", str(DEMO), "--all", "--top", "all"), "fleet --json", "demo", seen)
    check_object(print_json("fleet", str(DEMO)), "fleet --json", "the newest of demo", seen)
    apart = fleet_of_peaks([2 * GIB, GIB] * 8 + [2 * GIB] * 8, devices=["GPU_0", "GPU_1"] * 8 + ["GPU_0"] * 8)
    own = {
        "rule": "",
        "tolerance_seconds": 60,
        "series_rule": "",
        "captures": [capture_json(FleetAnswer(apart))],
        "left_out": [],
    }
    check_object({"schema_version": 3, "next": [], **own}, "fleet --json", "apart", seen)
    assert seen >= set(all_keys("fleet --json"))


@pytest.mark.slow
@pytest.mark.usefixtures("no_processes")
def test_check_fleet(print_json: Any, pod: Path) -> None:
    seen = set[str]()
    answer = print_json("check", str(pod), "--max-spread", "5%", "--max-peak", "300MiB", "--expect", "99")
    check_object(answer, "check --fleet --json", "pod", seen)
    of_demo = print_json("check", str(DEMO), "--fleet", "--max-peak", "900GiB")
    check_object(of_demo, "check --fleet --json", "the newest of demo", seen)
    assert {found["kind"] for found in answer["broken"]} == {"peak", "reserved", "spread"}
    assert seen >= set(all_keys("check --fleet --json"))


@pytest.mark.slow
@pytest.mark.usefixtures("no_processes")
def test_trend(print_json: Any, tmp_path: Path) -> None:
    seen = set[str]()
    write_trend(Pod(1, 1, 0.5), tmp_path, 3)
    check_object(print_json("fleet", "--trend", str(tmp_path)), "fleet --trend --json", "days", seen)
    assert seen >= set(all_keys("fleet --trend --json"))


def test_cache(print_json: Any) -> None:
    seen = set[str]()
    check_object(print_json("cache"), "cache --json", "cache", seen)
    assert seen >= set(all_keys("cache --json"))


def test_export_and_hook(print_json: Any, tmp_path: Path) -> None:
    seen = set[str]()
    for suffix in ("csv", "json"):
        answer = print_json("export", str(DEMO / "train_step"), "--to", str(tmp_path / f"rows.{suffix}"))
        check_object(answer, "export --json", suffix, seen)
    check_object(print_json("hook", "status"), "hook --json", "hook", seen)
    assert seen >= set(all_keys("hook --json")) | {"export --json: file", "Written file: rows"}


def test_the_columns_of_exported_fleets() -> None:
    columns = [row[0].strip("`") for row in section(PAGE, "Columns of exported fleets").tables[0]]
    assert columns == list(COLUMNS)


def test_the_list_of_runs() -> None:
    client = Client(MemoryApp(Catalog(str(DEMO))))
    client.get("/api/recordings?run=train_step/cpu")
    seen = set[str]()
    check_object(client.get("/api/runs").json, "api/runs", "runs", seen)
    assert seen >= set(all_keys("api/runs"))


def test_types_that_are_named_have_a_table() -> None:
    named = {cell for found in sections(PAGE) for table in found.tables for row in table for cell in row[1:2]}
    targets = {cell.partition("(#")[2].partition(")")[0] for cell in named if "(#" in cell}
    assert targets <= anchors(PAGE)
