"""The page's view of a device profile, in words and figures, and over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.pprof_files import Frame, Sample, profile_of, write
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.kinds.device_profile import device_profile, figures, headline
from tb_memplugin.readers import open_file

LIB = Frame("pjit", "/x/site-packages/jax/_src/pjit.py", 9)
STEP, MAIN = Frame("step", "train.py", 7), Frame("main", "train.py", 3)
SAMPLES = [
    Sample([LIB, STEP, MAIN], 3 << 20, 3, device="cuda:0"),
    Sample([LIB, MAIN], 1 << 20, device="cuda:0"),
    Sample([LIB, STEP, MAIN], 5 << 20, device="cuda:1"),
    Sample([LIB, MAIN], 1 << 10, 2, "executable", ""),
]


def read(samples: list[Sample]) -> list[Recording]:
    (part,) = open_file(profile_of(samples), "memory.prof")
    return part.read()


def test_the_answer_in_words() -> None:
    one, _, executables = read(SAMPLES)
    assert headline(one) == "4.00 MiB in 4 live buffers on cuda:0. Most from train.py:7, 3.00 MiB."
    assert headline(executables).startswith("0 B in 0 live buffers on executables, 1.00 KiB in 2 executables.")
    (nothing,) = read([])
    assert headline(nothing) == "0 B in 0 live buffers on unknown device."


def test_figures_of_one_device_and_the_devices_of_its_file() -> None:
    recordings = read(SAMPLES)
    assert {figure.key: figure.bytes for figure in figures(recordings[0])} == {
        "live_peak": 4 << 20, "buffers": 4 << 20, "executables": 0, "reported_peak": None, "capacity": None,
    }  # fmt: skip
    said = device_profile(recordings[0], recordings)
    assert [(device["memory"], device["bytes"]) for device in said["devices"]] == [
        ("cuda:0", 4 << 20),
        ("cuda:1", 5 << 20),
        ("executables", 1 << 10),
    ]
    assert said["devices"][0]["kinds"] == [{"kind": "buffer", "bytes": 4 << 20, "allocations": 4}]


@pytest.fixture
def client(tmp_path: Path) -> Client:
    for i in range(1, 7):
        write(tmp_path, [*SAMPLES, Sample([LIB, STEP, MAIN], i << 20, device="cuda:0")], f"memory{i}.prof")
    return Client(MemoryApp(Catalog(str(tmp_path))))


def get(client: Client, path: str, status: int = 200, **query: object) -> Any:
    answer = client.get(path, query_string=query)
    assert answer.status_code == status, answer.text
    return json.loads(answer.text)


def ids(client: Client) -> dict[tuple[str, str], str]:
    (run,) = get(client, "api/runs")["runs"]
    listed = get(client, "api/recordings", run=run["name"])["recordings"]
    return {(found["title"], found["memory"]): found["id"] for found in listed}


def cum(answer: Any) -> dict[str, int]:
    return dict(zip(answer["nodes"]["function"], answer["nodes"]["cum"], strict=True))


def test_the_call_graph_of_one_device_of_the_file_and_of_a_change(client: Client) -> None:
    known = ids(client)
    first, last = known["memory1.prof", "cuda:0"], known["memory6.prof", "cuda:0"]
    one = get(client, "api/callgraph", id=first, by="function")
    assert cum(one) == {"main": 5 << 20, "step": 4 << 20}
    assert (one["total"], one["unplaced"], one["calls"]["bytes"]) == (5 << 20, 0, [4 << 20])
    whole = get(client, "api/callgraph", id=first, by="function", whole=1, fold=0)
    assert cum(whole) == {"main": (10 << 20) + 1024, "step": 9 << 20, "pjit": (10 << 20) + 1024}
    grown = get(client, "api/callgraph", id=last, base=first, by="line")
    assert cum(grown) == {"main": 5 << 20, "step": 5 << 20}
    assert grown["total"] == 5 << 20
    assert dict(zip(grown["nodes"]["function"], grown["nodes"]["line"], strict=True)) == {"main": 3, "step": 7}


def test_a_picture_of_few_functions_says_what_is_not_in_it(client: Client) -> None:
    said = get(client, "api/callgraph", id=ids(client)["memory1.prof", "cuda:0"], by="function", most=1)
    assert said["nodes"]["drawn"] == [True, False]
    assert said["not_drawn"] == {"nodes": 1, "largest": 4 << 20}


def test_a_device_profile_and_its_series(client: Client) -> None:
    recording = ids(client)["memory2.prof", "cuda:0"]
    assert get(client, "api/device_profile", id=recording)["recording"]["id"] == recording
    said = get(client, "api/growth", id=recording)
    assert [point["bytes"] for point in said["points"]] == [(4 + i) << 20 for i in range(1, 7)]
    assert said["sites"][0]["verdict"] == "leak"
    assert said["points"][1]["id"] == recording


def test_comparisons(client: Client) -> None:
    known = ids(client)
    a, b = known["memory1.prof", "cuda:0"], known["memory3.prof", "cuda:0"]
    said = get(client, "api/compare", a=a, b=b, by="source")
    assert said["b"]["bytes"] - said["a"]["bytes"] == 2 << 20
    assert [(step["label"], step["bytes_a"], step["bytes_b"]) for step in said["steps"]] == [
        ("step (train.py:7)", 4 << 20, 6 << 20),
        ("main (train.py:3)", 1 << 20, 1 << 20),
    ]
    assert get(client, "api/compare", a=a, b=a, by="role")["headline"].startswith("Nothing changed")
    assert get(client, "api/compare", a=a, b=b, by="role", at_a=0, at_b=0)["a"]["position"] == 0


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("api/callgraph", {"by": "function"}, 400),
        ("api/callgraph", {"id": "", "by": "address"}, 404),
        ("api/callgraph", {"id": "first", "by": "address"}, 400),
        ("api/callgraph", {"id": "first", "by": "function", "focus": "("}, 404),
        ("api/callgraph", {"id": "first", "by": "function", "most": 0}, 400),
        ("api/callgraph", {"id": "first", "by": "function", "base": "nothing"}, 404),
        ("api/growth", {"id": "nothing"}, 404),
        ("api/compare", {"a": "first", "b": "first", "by": "size"}, 400),
        ("api/compare", {"a": "first", "b": "first", "by": "role", "at_a": 7}, 400),
        ("api/compare", {"a": "first", "b": "nothing", "by": "role"}, 404),
    ],
)
def test_what_is_wrong_is_said(client: Client, path: str, query: dict[str, Any], status: int) -> None:
    first = ids(client)["memory1.prof", "cuda:0"]
    asked = {name: first if value == "first" else value for name, value in query.items()}
    assert set(get(client, path, status, **asked)["error"]) == {"what", "where", "remedy"}
