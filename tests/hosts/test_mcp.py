"""The server of the Model Context Protocol: its tools answer what the commands print, and no call blocks another."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
import anyio
from anyio.from_thread import start_blocking_portal
from jsonschema import Draft202012Validator
from mcp import Client
from support.fits import write_search
from support.mcp_client import Asked, asking
from support.schemas import schema_name, validate
from support.servers import DEMO

from benchmarks.pods.pod import Pod, write_trend
from tb_memplugin.cli import main
from tb_memplugin.errors import end_if_abandoned
from tb_memplugin.hosts.mcp import server as mcp_server
from tb_memplugin.hosts.mcp.reader import LogdirReader
from tb_memplugin.hosts.mcp.tools import BY_NAME
from tb_memplugin.questions.asking.asked import TOP

pytestmark = pytest.mark.slow  # starts a server, and reads the whole demo several times

STEP = "v5e_out_of_memory||jit_train_step|HBM"
LEAK = "leak/cpu|localhost|allocator|cpu:0 live arrays"


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo, with the candidates of a fit."""
    logs = tmp_path_factory.mktemp("mcp") / "logs"
    shutil.copytree(DEMO, logs)
    write_search(logs)
    assert main(["baseline", str(logs / "v5e_train_step"), "--write", str(logs.with_name("baseline.json"))]) == 0
    shutil.copy(logs.with_name("baseline.json"), logs)
    return logs


@pytest.fixture(scope="module")
def asked(logdir: Path) -> Iterator[Asked]:
    with asking(logdir) as asked:
        yield asked


MOST_BYTES = 15_000  # of the list of tools, which an agent reads at each start


def test_there_are_twelve_tools_that_only_read(asked: Asked) -> None:
    tools = asked.tools()
    names = [
        "summary",
        "explain",
        "buffers",
        "times",
        "compare",
        "advice",
        "fit",
        "plan",
        "fleet",
        "trend",
        "check",
        "baseline",
    ]
    assert [tool.name for tool in tools] == names
    assert len(json.dumps([tool.model_dump(exclude_none=True) for tool in tools])) < MOST_BYTES
    for tool in tools:
        assert tool.annotations is not None and tool.annotations.read_only_hint
        assert tool.output_schema is None, "it is long"
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["additionalProperties"] is False


CALLS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("summary", {}, ["LOGDIR"]),
    ("summary", {"top": 2}, ["LOGDIR", "--top=2"]),
    ("explain", {}, ["LOGDIR"]),
    ("explain", {"recording": STEP, "top": 20}, ["LOGDIR", f"--recording={STEP}", "--top=20"]),
    ("explain", {"recording": LEAK, "at": "#50"}, ["LOGDIR", f"--recording={LEAK}", "--at=#50"]),
    ("buffers", {"recording": STEP}, ["LOGDIR", f"--recording={STEP}"]),
    ("buffers", {"recording": STEP, "match": "layer"}, ["LOGDIR", f"--recording={STEP}", "--match=layer"]),
    ("times", {"recording": STEP}, ["LOGDIR", f"--recording={STEP}"]),
    ("buffers", {"recording": STEP, "row": 3}, ["LOGDIR", f"--recording={STEP}", "--row=3"]),
    ("advice", {"recording": STEP, "top": 1}, ["LOGDIR", f"--recording={STEP}", "--top=1"]),
    ("compare", {"a": "v5e_out_of_memory", "b": "v5e_mended"}, ["LOGDIR/v5e_out_of_memory", "LOGDIR/v5e_mended"]),
    (
        "compare",
        {"a": "v5e_out_of_memory", "b": "v5e_mended", "by": "source", "recording": "HBM"},
        ["LOGDIR/v5e_out_of_memory", "LOGDIR/v5e_mended", "--by=source", "--recording=HBM"],
    ),
    ("fit", {}, ["LOGDIR"]),
    ("fit", {"knobs": {"remat": "full"}}, ["LOGDIR", "--set=remat=full"]),
    ("fit", {"target": "v5e:2x2", "top": 100}, ["LOGDIR", "--on=v5e:2x2", "--top=100"]),
    ("fit", {"target": "h100"}, ["LOGDIR", "--on=h100"]),
    ("plan", {}, ["LOGDIR"]),
    ("plan", {"target": "v5e:2x2", "top": 100}, ["LOGDIR", "--on=v5e:2x2", "--top=100"]),
    ("fit", {"path": "h100_train_step", "top": 100}, ["LOGDIR/h100_train_step", "--top=100"]),
    ("fleet", {}, ["LOGDIR"]),
    ("check", {"max_peak": "1GiB"}, ["LOGDIR", "--max-peak=1GiB"]),
    ("check", {"max_peak": "1GiB", "recording": "v5e.*HBM"}, ["LOGDIR", "--max-peak=1GiB", "--recording=v5e.*HBM"]),
    ("check", {"expect": 1, "max_spread": "5%"}, ["LOGDIR", "--expect=1", "--max-spread=5%"]),
    ("check", {"baseline": "baseline.json"}, ["LOGDIR", "--baseline=LOGDIR/baseline.json"]),
    ("baseline", {"path": "v5e_mended"}, ["LOGDIR/v5e_mended"]),
    ("fit", {"recording": STEP, "target": "v5p"}, ["LOGDIR", f"--recording={STEP}", "--on=v5p"]),
]


@pytest.mark.parametrize(("tool", "arguments", "command"), CALLS, ids=str)
def test_a_tool_answers_what_the_command_prints(
    asked: Asked,
    logdir: Path,
    tool: str,
    arguments: dict[str, Any],
    command: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = asked.answer(tool, **arguments)
    validate(answer, schema_name([tool, *(word.partition("=")[0] for word in command)]))
    main([tool, f"--top={TOP}", *(word.replace("LOGDIR", str(logdir)) for word in command), "--json"])
    printed = json.loads(capsys.readouterr().out.replace(f"{logdir}/", ""))
    answer = json.loads(json.dumps(answer).replace(f"{logdir}/", ""))
    assert {**answer, "next": []} == {**printed, "next": []}
    assert [step["why"] for step in answer["next"]] == [step["why"] for step in printed["next"]]


def test_further_questions_are_calls_of_tools(asked: Asked) -> None:
    waiting: list[tuple[str, dict[str, Any]]] = [
        ("summary", {}),
        ("compare", {"a": "v5e_out_of_memory", "b": "v5e_mended"}),
        ("fit", {"knobs": {"remat": "none", "batch": 172}}),
    ]
    seen = set[str]()
    while waiting:
        tool, arguments = waiting.pop()
        if (call := json.dumps([tool, arguments])) in seen or len(seen) > 30:
            continue
        seen.add(call)
        waiting += [(step["tool"], step["arguments"]) for step in asked.answer(tool, **arguments)["next"]]
    assert {json.loads(call)[0] for call in seen} == {"summary", "explain", "buffers", "compare", "advice", "fit"}


def test_a_job_is_asked_about_by_names_in_the_logdir(tmp_path: Path) -> None:
    write_trend(Pod(3, 2, 0.5), tmp_path, 3)
    with asking(tmp_path) as asked:
        answer = asked.answer("fleet")
        assert answer["captures"][0]["hosts"] == 3
        explain, further = answer["next"]
        assert not Path(explain["arguments"]["path"]).is_absolute()
        assert asked.answer(explain["tool"], **explain["arguments"])["lines"]
        series = asked.answer(further["tool"], **further["arguments"])["series"]
        assert further["tool"] == "trend" and len(series[0]["points"]) == 3
        assert "Not a name in the logdir" in asked.error("check", baseline="../x")


def test_two_recordings_are_compared_by_their_ids(asked: Asked) -> None:
    ids = [one["id"] for one in asked.answer("summary", path="device_profile_leak", top=100)["recordings"]]
    a, b = (next(one for one in ids if f"memory{n}.prof" in one) for n in (2, 9))
    [compared] = asked.answer("compare", a=a, b=b)["comparisons"]
    assert (compared["a"]["recording"], compared["b"]["recording"]) == (a, b)
    assert compared["b"]["bytes"] > compared["a"]["bytes"]


def test_a_part_of_the_logdir_has_the_ids_of_the_whole(asked: Asked) -> None:
    whole = {one["id"] for one in asked.answer("summary", top=100)["recordings"]}
    part = {one["id"] for one in asked.answer("summary", path="leak/cpu")["recordings"]}
    assert part == {one for one in whole if one.startswith("leak/cpu|")}


def test_a_second_call_reads_no_file(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = LogdirReader(str(logdir))
    reader.listing("v5e_mended")
    monkeypatch.setattr("tb_memplugin.catalog.catalog.read_file", lambda *_: pytest.fail("read again"))
    assert len(reader.listing("v5e_mended").recordings) == 4


def in_process(logdir: Path, use: Callable[[Client], Awaitable[None]]) -> None:
    """Run a client and a server in this process, in a thread: Playwright has an event loop in the main one."""

    async def run() -> None:
        async with Client(mcp_server.server_of(LogdirReader(str(logdir)))) as client:
            await use(client)

    with start_blocking_portal() as portal:
        portal.call(run)


def replace_answer(monkeypatch: pytest.MonkeyPatch, wait: Callable[[LogdirReader], None]) -> None:
    """Let `summary` wait before it answers."""
    summary = BY_NAME["summary"]

    def slow(reader: LogdirReader, *arguments: Any) -> Any:
        wait(reader)
        return summary.answer(reader, *arguments)

    monkeypatch.setitem(BY_NAME, "summary", summary._replace(answer=slow))


def test_other_requests_are_answered_while_a_call_runs(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()
    replace_answer(monkeypatch, lambda _: assert_set(end))

    async def use(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "summary", {})
            with anyio.fail_after(60):
                assert len((await client.list_tools()).tools) == len(BY_NAME)
                assert not (await client.call_tool("explain", {"path": "v5e_mended"})).is_error
            end.set()

    in_process(logdir, use)


def test_calls_that_are_cancelled_leave_their_places_at_once(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = list[int](), list[int]()

    def read_until_abandoned(reader: LogdirReader) -> None:
        begun.append(1)
        try:
            for _ in range(6000):
                end_if_abandoned()
                time.sleep(0.01)
        finally:
            ended.append(1)

    replace_answer(monkeypatch, read_until_abandoned)

    async def use(client: Client) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(mcp_server.MAX_CALLS):
                group.start_soon(client.call_tool, "summary", {})
            with anyio.fail_after(60):
                while len(begun) < mcp_server.MAX_CALLS:
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        with anyio.fail_after(60):
            assert not (await client.call_tool("explain", {"path": "v5e_mended"})).is_error
            while len(ended) < mcp_server.MAX_CALLS:
                await anyio.sleep(0.01)

    in_process(logdir, use)


def assert_set(event: threading.Event) -> None:
    assert event.wait(60)


def test_a_client_that_asks_gets_the_progress_of_reading(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "PROGRESS_SECONDS", 0.01)

    def read_slowly(reader: LogdirReader) -> None:
        file = reader.catalog.runs()[0].files[0]._replace(size=1000)
        with reader.catalog.progress.files("slow", [file, file._replace(path="other")]):
            reader.catalog.progress.finished("slow", file)
            until = time.monotonic() + 60
            while not reported and time.monotonic() < until:
                time.sleep(0.01)

    replace_answer(monkeypatch, read_slowly)
    reported: list[tuple[float, float | None, str | None]] = []

    async def use(client: Client) -> None:
        async def note(progress: float, total: float | None, message: str | None) -> None:
            reported.append((progress, total, message))

        await client.call_tool("summary", {"path": "device_profile"}, progress_callback=note)

    in_process(logdir, use)
    assert reported[0] == (1000, 2000, "read 0.98 KiB of 1.95 KiB")
    assert all(before[0] < after[0] for before, after in pairwise(reported))


def test_an_answer_that_is_too_long_is_refused_with_a_remedy(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "MAX_ANSWER_BYTES", 1000)

    async def use(client: Client) -> None:
        result = await client.call_tool("explain", {"path": "v5e_mended"})
        assert result.is_error
        assert "ask for fewer items with `top`" in str(result.content)

    in_process(logdir, use)


def test_a_bug_of_ours_is_an_error_of_its_call_only(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: LogdirReader) -> None:
        raise ZeroDivisionError("a secret of the process")

    replace_answer(monkeypatch, fail)

    async def use(client: Client) -> None:
        result = await client.call_tool("summary", {})
        assert result.is_error
        assert "ZeroDivisionError" in str(result.content) and "secret" not in str(result.content)
        assert not (await client.call_tool("advice", {"path": "device_profile"})).is_error

    in_process(logdir, use)
