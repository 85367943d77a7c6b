"""The overview of a run: its tightest memories, largest buffers and co-resident programs, added up by hand."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.allocators import STEP_NS, Block, allocator
from support.profiles import profiles
from support.recordings import Row, recording
from support.servers import DEMO
from werkzeug.test import Client

from tb_memplugin.analysis.linking import co_residency, running_at_peak
from tb_memplugin.analysis.ownership.classification import HeaviestLayer, heaviest_layer
from tb_memplugin.analysis.usage.headroom import Headroom, headroom, with_device_limits
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.sources import catalog_source
from tb_memplugin.model.kinds import Axis, RecordingKind, RegionKind, Role, SpanKind
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import LazyRecording, Recording
from tb_memplugin.model.text import Text
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.questions.run import overview as overview_module
from tb_memplugin.questions.run.order import opening
from tb_memplugin.questions.run.overview import overview, overview_figures, overview_of_run
from tb_memplugin.source_files import SourceFiles


def test_no_share_is_shown_where_events_contradict_each_other() -> None:
    """The rows add up to 656 bytes, of which the allocator says that 100 are in use."""
    made = allocator([Block("jit_step", 600, 0, None), Block("jit_eval", 56, 0, None)], 1)
    assert made.reported is not None
    in_use = np.full(made.length, 100)
    odd = dataclasses.replace(made, reported=dataclasses.replace(made.reported, in_use=in_use))
    answer = overview([odd])
    (row,) = answer["rows"]
    assert (row["peak_bytes"], row["role"], row["part"]) == (100, None, None)
    (caveat,) = answer["caveats"]
    assert caveat["text"].startswith("GPU_0_bfc of host: At the peak, live allocations add up to more")
    assert caveat["code"] == "more_than_in_use"
    assert caveat["code"] in [found["code"] for found in row["caveats"]]
    explained = explain(odd)
    shares = [part["share"] for name in ("roles", "model", "source", "function", "groups") for part in explained[name]]
    assert max(shares) <= 1
    assert overview([made])["caveats"] == []


PARAMETER, OUTPUT, TEMPORARY = RegionKind.PARAMETER, RegionKind.OUTPUT, RegionKind.TEMPORARY


def program(title: str, rows: Sequence[tuple[str, str, int, RegionKind]], memory: str = "HBM") -> Recording:
    """Build (op, op_name, bytes, kind of region) rows, each in a region of its own, all live at position 0."""
    made = recording(
        [Row(size, 0, 1, region=i) for i, (_, _, size, _) in enumerate(rows)], 1, [(row[2], row[3]) for row in rows]
    )
    named = dataclasses.replace(
        made.allocations,
        op=Text.of([op for op, _, _, _ in rows]),
        op_name=Text.of([scope for _, scope, _, _ in rows]),
    )
    return dataclasses.replace(made, title=title, memory=memory, allocations=named)


def train_step() -> Recording:
    return program(
        "jit_train(1)",
        [
            ("parameter", "params['layer_0']", 1000, PARAMETER),
            ("parameter", "batch", 10, PARAMETER),
            ("fusion", "jit(train)/jvp(layer_0)/mul", 5000, TEMPORARY),
            ("tuple", "", 8, OUTPUT),
        ],
    )


def evaluate() -> Recording:
    return program(
        "jit_evaluate(2)",
        [
            ("parameter", "params['layer_0']", 1000, PARAMETER),
            ("parameter", "tokens", 30, PARAMETER),
            ("fusion", "jit(evaluate)/layer_0/mul", 400, TEMPORARY),
        ],
    )


def device(memory: str, capacity: int | None, ran: Sequence[str] = ("train",)) -> Recording:
    made = allocator([Block("x", 2048, 0, None)], 1, marked=[(name, SpanKind.EXECUTION) for name in ran])
    return dataclasses.replace(made, memory=memory, capacity=capacity)


def test_a_program_has_the_room_of_the_smallest_device_of_its_host() -> None:
    def room(program: Recording, *beside: Recording) -> Headroom:
        return headroom(with_device_limits([program, *beside])[0])

    elsewhere = dataclasses.replace(device("GPU_2_bfc", 7000), host="other")
    run = [device("GPU_0_bfc", 20_000), device("GPU_1_bfc", 10_000), device("gpu_host_bfc", 500), elsewhere]
    assert room(train_step(), *run) == (6018, 10_000, "the limit of GPU_1_bfc", 3982)
    assert room(dataclasses.replace(train_step(), memory="VMEM"), *run).capacity is None
    assert room(train_step(), *run[2:]) == (6018, None, "", None)
    known = dataclasses.replace(train_step(), capacity=9000, capacity_source="the memory of the smallest device")
    assert room(known, *run) == (6018, 9000, "the memory of the smallest device", 2982)
    assert room(known, device("GPU_0_bfc", 7000)).left == 982
    assert room(run[0], *run) == (2048, 20_000, "from the recording", 20_000 - 2048)


@pytest.mark.parametrize(
    ("failure", "left"),
    [
        (OutOfMemory(asked=500, free=300, capacity=8000), -200),
        (OutOfMemory(asked=500, capacity=8000, in_use=7900), -400),
        (OutOfMemory(asked=9000, capacity=8000, phase=OutOfMemoryPhase.COMPILE), -1000),
        (OutOfMemory(asked=100, free=300, largest_free=50), -50),  # the free memory is fragmented
        (OutOfMemory(asked=100, free=300), -1),
        (OutOfMemory(asked=100, free=300), -1),  # fragmented, although it does not report so
        (OutOfMemory(asked=100), None),
        (OutOfMemory(), None),
    ],
)
def test_what_was_refused_lacked_room(failure: OutOfMemory, left: int | None) -> None:
    failed = dataclasses.replace(train_step(), kind=RecordingKind.OUT_OF_MEMORY, out_of_memory=failure)
    assert headroom(failed).left == left


def test_what_was_there_together() -> None:
    [place] = co_residency([train_step(), evaluate()])
    # 1018 + 1030 are persistent, 1000 of it shared; of 5000 and 400 temporary bytes, the larger counts.
    assert (place.host, place.memory, place.bytes, place.executed) == ("host", "HBM", 1018 + 30 + 5000, False)
    assert [(r.program.title, r.persistent, r.shared, r.temporary, r.runs) for r in place.programs] == [
        ("jit_train(1)", 1018, 0, 5000, None),
        ("jit_evaluate(2)", 1030, 1000, 400, None),
    ]


def test_only_what_ran_counts_where_executions_are_recorded() -> None:
    assert co_residency([train_step(), evaluate(), device("GPU_0_bfc", None)]) == []
    [place] = co_residency([train_step(), evaluate(), device("GPU_0_bfc", None, ["train", "evaluate"])])
    assert place.executed
    assert [resident.runs for resident in place.programs] == [1, 1]


def test_a_device_names_the_program_itself() -> None:
    of_device = device("TPU core 0", None, ["jit_train(1)", "jit_evaluate(3)", "evaluate"])
    [place] = co_residency([train_step(), evaluate(), of_device])
    assert [resident.runs for resident in place.programs] == [1, 1]
    assert (
        co_residency([train_step(), evaluate(), device("TPU core 0", None, ["jit_train(1)", "jit_evaluate(3)"])]) == []
    )


def test_a_call_within_a_call_of_the_same_name_is_one_run() -> None:
    twice = device("GPU_0_bfc", None, ["train", "train", "evaluate"])
    assert twice.spans is not None and len(twice.spans) == 3
    later = dataclasses.replace(
        twice.spans, **{f: getattr(twice.spans, f) + 2 * STEP_NS for f in ("start_ns", "end_ns")}
    )
    both = dataclasses.replace(
        twice.spans,
        name=twice.spans.name.take(np.r_[0:3, 0:3]),
        kind=np.r_[twice.spans.kind, later.kind],
        start_ns=np.r_[twice.spans.start_ns, later.start_ns],
        end_ns=np.r_[twice.spans.end_ns, later.end_ns],
    )
    [place] = co_residency([train_step(), evaluate(), dataclasses.replace(twice, spans=both)])
    assert [resident.runs for resident in place.programs] == [2, 2]


def test_other_hosts_and_memories_are_apart() -> None:
    run = [train_step(), dataclasses.replace(evaluate(), host="b"), dataclasses.replace(evaluate(), memory="VMEM")]
    assert co_residency(run) == []


def layered(*scopes: tuple[str, int]) -> Recording:
    return program("jit_f(1)", [("fusion", scope, size, TEMPORARY) for scope, size in scopes])


@pytest.mark.parametrize(
    ("scopes", "part"),
    [
        (
            [
                ("jit(f)/jvp(layer_0)/a", 10),
                ("jit(f)/jvp(layer_1)/a", 20),
                ("jit(f)/transpose(jvp(layer_1))/b", 30),
                ("jit(f)/jvp(logits)/c", 50),
            ],
            HeaviestLayer("layer_*", 2, 60),
        ),
        (
            [("jit(f)/jvp(logits)/a", 40), ("jit(f)/transpose(jvp(logits))/b", 5), ("jit(f)/mlp/c", 44)],
            HeaviestLayer("logits", 1, 45),
        ),
        # Too small to be named.
        ([("jit(f)/jvp(layer_0)/a", 1), ("jit(f)/jvp(layer_1)/a", 1), ("", 900)], None),
        ([("jit(f)/mul", 5)], None),
    ],
)
def test_the_biggest_part(scopes: list[tuple[str, int]], part: HeaviestLayer | None) -> None:
    assert heaviest_layer(layered(*scopes)) == part


def test_the_biggest_part_of_an_allocator_is_a_function_or_a_line() -> None:
    step = allocator([Block("step", 8, 0, None, stack=1), Block("load", 4, 0, None, stack=0)], 1)
    assert heaviest_layer(step) == HeaviestLayer("step", 1, 8)
    rows = dataclasses.replace(step.allocations, op_name=Text.of(["", ""]))
    assert heaviest_layer(dataclasses.replace(step, allocations=rows)) == HeaviestLayer("layer (model.py:20)", 1, 8)


def test_main_memories_come_first_by_the_used_share_of_their_limits() -> None:
    roomy, pool = device("GPU_0_bfc", 10**6), dataclasses.replace(device("gpu_host_bfc", 2100), host="b")
    unknown = dataclasses.replace(evaluate(), host="c")
    larger = dataclasses.replace(train_step(), host="c")
    answer = overview([pool, unknown, larger, roomy])
    assert [row["id"] for row in answer["rows"]] == [roomy.id, larger.id, unknown.id, pool.id]
    assert [row["headroom_bytes"] for row in answer["rows"]] == [10**6 - 2048, None, None, 52]
    assert answer["headline"] == (
        "4 recordings. GPU_0_bfc of host uses the largest share of its limit: "
        "it needs 2.00 KiB of 977 KiB (0.2%), and 975 KiB is left."
    )
    [place] = answer["together"]
    assert place["measured"] == []
    assert place["sentence"].startswith("At most 5.91 KiB, from the 2 programs that are in this run; whether all")


def test_small_memories_come_last_and_lead_no_headline() -> None:
    """A pool of 8 of 8 bytes is full, and a VMEM with 1 byte left is on the chip."""
    main = dataclasses.replace(train_step(), capacity=12_036)
    chip = program("jit_train(1)", [("fusion", "", 5999, TEMPORARY)], "VMEM")
    assert chip.program is not None
    chip = dataclasses.replace(chip, program=dataclasses.replace(chip.program, memory_space=1), capacity=6000)
    answer = overview([small_pool(), chip, main])
    assert [(row["memory"], row["small"]) for row in answer["rows"]] == [
        ("HBM", False),
        ("VMEM", False),
        ("gpu_host_bfc", True),
    ]
    assert answer["headline"].startswith("3 recordings. jit_train(1) in HBM uses the largest share of its limit")


def test_equal_hosts_and_devices_have_no_worst_one() -> None:
    hosts = [dataclasses.replace(device("GPU_0_bfc", 10**6), host=f"h{i}") for i in range(8)]
    assert "GPU_0_bfc on each of 8 equal hosts uses" in overview(hosts)["headline"]
    programs = [dataclasses.replace(train_step(), host=f"h{i}", capacity=12_036) for i in range(8)]
    assert "jit_train(1) in HBM on each of 8 equal hosts uses" in overview(programs)["headline"]
    devices = [device(f"GPU_{i}_bfc", 10**6) for i in range(8)]
    assert "Each of 8 equal memories, such as GPU_0_bfc of host, uses" in overview(devices)["headline"]
    assert "of h1 uses" in overview([*hosts[:1], dataclasses.replace(hosts[1], capacity=5000)])["headline"]


def test_the_page_opens_at_what_clearly_uses_most_of_its_limit() -> None:
    step, other = train_step(), evaluate()
    tight, roomy = dataclasses.replace(step, capacity=7000), dataclasses.replace(other, capacity=7000)
    error = dataclasses.replace(step, kind=RecordingKind.OUT_OF_MEMORY, title="error", out_of_memory=OutOfMemory())
    too_large = dataclasses.replace(step, capacity=6000)
    assert opening([]) is None
    assert opening([step]) == step.id
    assert opening([roomy, tight]) == tight.id
    assert opening([tight, dataclasses.replace(tight, host="other")]) is None
    assert opening([step, other]) is None  # no limit is known
    assert opening([roomy, error]) == error.id
    assert opening([error, roomy, too_large]) == too_large.id  # it has the buffers
    assert opening([small_pool(), tight]) == tight.id


def small_pool() -> Recording:
    """Return a pool in host memory that is full with eight bytes."""
    made = allocator([Block("x", 8, 0, None)], 1)
    return dataclasses.replace(made, memory="gpu_host_bfc", capacity=8)


def test_roles_and_shares_are_of_the_peak() -> None:
    [row] = overview([dataclasses.replace(train_step(), capacity=12_036)])["rows"]
    assert row["role"] == {"role": int(Role.TEMPORARY), "bytes": 6018, "share": 1}
    assert (row["needed_bytes"], row["capacity_bytes"], row["headroom_bytes"]) == (6018, 12_036, 6018)
    assert row["part"] == {"name": "layer_0", "repeats": 1, "bytes": 5000, "share": 5000 / 6018}


def test_headlines() -> None:
    def headline(*run: Recording) -> str:
        said: str = overview(run)["headline"]
        return said

    step = train_step()
    assert headline() == "This run has no recordings."
    assert headline(step) == (
        "The largest peak is 5.88 KiB, of jit_train(1) in HBM. Device capacity is not recorded in this run."
    )
    assert headline(dataclasses.replace(step, capacity=6000)) == (
        "jit_train(1) in HBM does not fit: it reserves 5.88 KiB of 5.86 KiB, 18 B too much."
    )
    failed = dataclasses.replace(
        step,
        kind=RecordingKind.OUT_OF_MEMORY,
        axis=Axis.INSTANT,
        title="error",
        out_of_memory=OutOfMemory(asked=2048, free=1024, in_use=6018),
    )
    assert headline(step, failed) == (
        "2 recordings. An allocation of 2.00 KiB in HBM failed; 1.00 KiB was free. "
        "Too much memory is in use: 1.00 KiB more must be free."
    )
    hints = [row["remedy"] for row in overview([failed, step])["rows"]]
    assert hints[0] is not None and hints[1] is None


def test_devices_were_measured() -> None:
    run = [train_step(), evaluate(), device("GPU_0_bfc", 9000, ["train", "evaluate"]), device("gpu_host_bfc", None)]
    [place] = overview(run)["together"]
    assert [(found["memory"], found["bytes"]) for found in place["measured"]] == [("GPU_0_bfc", 2048)]
    assert place["sentence"].endswith(
        "another's argument. The fullest device, GPU_0_bfc, had 2.00 KiB in use, while train and evaluate ran."
    )


def test_what_ran_at_the_peak() -> None:
    marks = [("train", SpanKind.STEP), ("step", SpanKind.EXECUTION), ("step", SpanKind.EXECUTION)]
    blocks = [Block("x", 8, 0, 0), Block("x", 16, 1, 1)]
    of = allocator(blocks, 2, marked=marks)
    assert running_at_peak(of) == ["step"]
    assert of.clock is not None
    assert running_at_peak(dataclasses.replace(of, clock=of.clock + 2 * STEP_NS)) == []
    assert running_at_peak(train_step()) == []


def test_a_recording_whose_stacks_are_damaged_is_still_listed() -> None:
    def damaged() -> Recording:
        raise InputError("the host's events are damaged", "file", "profile again")

    assert len(overview([LazyRecording.of(train_step(), damaged)])["rows"]) == 1


@pytest.mark.parametrize("name", ["train_step", "leak", "h100_train_step", "v5e_out_of_memory", "device_profile"])
def test_the_figures_are_those_of_the_whole_overview_without_reading_every_buffer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = catalog_source(Catalog(str(DEMO / name)), SourceFiles([]))
    run = source.runs.runs()[0]["name"]
    whole = overview_of_run(source.runs, run)

    def reads_every_buffer(*_: object) -> None:
        raise AssertionError("reads every buffer")

    for function in ("bytes_by_role", "heaviest_layer", "co_residency"):
        monkeypatch.setattr(overview_module, function, reads_every_buffer)
    figures = overview_figures(source.runs, run)
    assert figures["headline"] == whole["headline"]
    assert figures["rows"] == [{**row, "role": None, "part": None} for row in whole["rows"]]
    assert (figures["together"], figures["problems"]) == ([], [])


@pytest.mark.parametrize("path", profiles(), ids=lambda path: path.parents[3].name)
def test_real_profiles(path: Path) -> None:
    listed = listing_of_path(str(path)).recordings
    answer = overview(listed)
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert {row["id"] for row in answer["rows"]} == {found.id for found in listed}
    for row in answer["rows"]:
        for part in (row["role"], row["part"]):
            assert part is None or 0 < part["bytes"] <= row["peak_bytes"]
    room = [row["headroom_bytes"] for row in answer["rows"] if row["headroom_bytes"] is not None]
    assert room == sorted(room)
    # The same figure as in all other views.
    capacities = {found.id: summary(found)["capacity_bytes"] for found in listed}
    assert {row["id"]: row["capacity_bytes"] for row in answer["rows"]} == capacities


def test_route() -> None:
    client = Client(MemoryApp(Catalog(str(DEMO))))
    rows = client.get("/api/overview", query_string={"run": "train_step/cpu"}).get_json()["rows"]
    assert [row["title"] for row in rows] == ["jit_train_step(0)", "jit_loss(2)"]
    assert (rows[0]["part"]["name"], rows[0]["part"]["repeats"]) == ("layer_*", 4)
    assert client.get("/api/overview").status_code == 400
    assert client.get("/api/overview?run=none").status_code == 404
