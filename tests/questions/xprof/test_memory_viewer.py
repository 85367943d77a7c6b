"""XProf's JSON from small Recordings with literal numbers, and field types equal to XProf's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.json_kinds import kinds
from support.profiles import answer_of_xprof, compiled_programs
from support.recordings import Row, recording

from benchmarks import generate
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.xprof.memory_viewer import memory_viewer
from tb_memplugin.readers.hlo import read_hlo

MIB = 2**20
HBM, VMEM = 0, 1
HELD = (4 * MIB, RegionKind.PARAMETER)
TEMPORARY = (8 * MIB, RegionKind.TEMPORARY)
OUTPUT = (2 * MIB, RegionKind.OUTPUT)


@pytest.fixture
def step() -> Recording:
    """Use an argument and an output throughout; 3 MiB over i0..i2, 5 MiB over i1, 1 KiB over i1..i2."""
    return recording(
        [
            Row(4 * MIB, -1, 4, region=0, requested=3 * MIB, name="param"),
            Row(2 * MIB, -1, 4, region=2, name="tuple{1,0}"),
            Row(MIB, 3, 4, region=2, charge=0, name="early{2}"),
            Row(3 * MIB, 0, 3, region=1, name="dot", stack=1),
            Row(5 * MIB, 1, 2, region=1, offset=3 * MIB, requested=4 * MIB, name="fusion{0}"),
            Row(1024, 1, 3, region=1, offset=8 * MIB - 1024, name="flag"),
        ],
        length=4,
        regions=[HELD, TEMPORARY, OUTPUT, (7, RegionKind.THREAD_LOCAL)],
    )


def test_series_show_what_is_live_before_each_instruction(step: Recording) -> None:
    answer = memory_viewer([step], HBM)
    kib = 1 / 1024
    assert answer["heapSizes"] == [6, 9, 14 + kib, 9 + kib, 6]
    assert answer["unpaddedHeapSizes"] == [6, 8, 12 + kib, 8 + kib, 5]
    assert answer["hloInstructionNames"] == ["i0", "i1", "i2", "i3", ""]
    assert answer["peakHeapSizePosition"] == peak(step).position == 1
    assert answer["heapSizes"][answer["peakHeapSizePosition"] + 1] == answer["peakHeapMib"] == 14 + kib
    assert answer["peakUnpaddedHeapMib"] == 12 + kib


def test_totals(step: Recording) -> None:
    answer = memory_viewer([step], HBM)
    assert answer["totalBufferAllocationMib"] == 14
    assert answer["indefiniteBufferAllocationMib"] == 6
    assert answer["entryComputationParametersMib"] == 4
    assert answer["maybeLiveOutMib"] == 2
    assert answer["nonReusableMib"] * MIB == 7


def test_the_largest_come_with_their_places_in_both_orders_and_small_ones_are_one(step: Recording) -> None:
    answer = memory_viewer([step], HBM)
    assert [b["label"] for b in answer["maxHeap"]] == [
        "param: f32[4]{0} # ",
        "tuple: f32[4]{0} # ",
        "dot: f32[4]{0} # ",
        "fusion: f32[4]{0} # ",
        "small (<16384 bytes)",
    ]
    assert [b["numbered"] for b in answer["maxHeap"]] == [0, 1, 2, 3, 4]
    assert answer["bySizeToMaxHeap"] == [3, 0, 2, 1, 4] == [b["numbered"] for b in answer["maxHeapBySize"]]
    assert answer["maxHeapToBySize"] == [1, 3, 2, 0, 4]
    assert answer["maxHeap"][4] == {
        "numbered": 4,
        "label": "small (<16384 bytes)",
        "logicalBufferId": -1,
        "logicalBufferSizeMib": 1 / 1024,
    }
    assert answer["maxHeap"][2] == {
        "numbered": 2,
        "label": "dot: f32[4]{0} # ",
        "logicalBufferId": 3,
        "logicalBufferSizeMib": 3,
        "unpaddedShapeMib": 3,
        "instructionName": "dot",
        "shapeString": "f32[4]{0}",
        "groupName": "Temporary",
        "opCode": "fusion",
        "sourceInfo": {"fileName": "model.py", "lineNumber": 20, "stackFrame": "model.py:20\ntrain.py:10"},
    }
    assert [b["groupName"] for b in answer["maxHeap"][:2]] == ["Parameter", "Output"]
    assert answer["maxHeap"][0]["unpaddedShapeMib"] == 3


def test_only_temporaries_have_spans_and_zero_is_left_out(step: Recording) -> None:
    assert memory_viewer([step], HBM)["logicalBufferSpans"] == {
        "3": {"limit": 3},
        "4": {"start": 1, "limit": 2},
        "5": {"start": 1, "limit": 3},
    }


def test_a_span_covers_the_points_at_which_its_buffer_is_in_the_series(step: Recording) -> None:
    answer = memory_viewer([step], HBM)
    for point, live in enumerate(answer["heapSizes"]):
        spans = answer["logicalBufferSpans"]
        within = [b for b, span in spans.items() if span.get("start", 0) < point <= span["limit"]]
        sizes = {"3": 3, "4": 5, "5": 1 / 1024}
        assert live == 6 + sum(sizes[b] for b in within)


def test_blocks_lie_in_their_allocations_in_bytes(step: Recording) -> None:
    container, *blocks = memory_viewer([step], HBM)["bufferBlocks"]
    assert container == {
        "logicalBufferId": -1,
        "name": "Temporary",
        "size": 8 * MIB,
        "endStep": 4,
        "category": "Temporary",
        "color": "#ffffff",
    }
    assert [(b["name"], b.get("offset", 0), b["size"], b.get("startStep", 0), b["endStep"]) for b in blocks] == [
        ("dot", 0, 3 * MIB, 0, 3),
        ("fusion{0}", 3 * MIB, 5 * MIB, 1, 2),
        ("flag", 8 * MIB - 1024, 1024, 1, 3),
    ]
    assert len({b["color"] for b in blocks}) == 3
    assert blocks[1]["unpaddedSize"] == 4 * MIB


def test_allocations_are_stacked() -> None:
    rows = [Row(MIB, 0, 2, region=1), Row(MIB, 0, 2, region=0, offset=MIB), Row(MIB, 1, 2, region=1, offset=3 * MIB)]
    stacked = recording(rows, 2, [(2 * MIB, RegionKind.TEMPORARY), (4 * MIB, RegionKind.TEMPORARY)])
    blocks = memory_viewer([stacked], HBM)["bufferBlocks"]
    assert [(b["logicalBufferId"] if "logicalBufferId" in b else 0, b.get("offset", 0)) for b in blocks] == [
        (-1, 0),
        (1, MIB),
        (-1, 2 * MIB),
        (0, 2 * MIB),
        (2, 5 * MIB),
    ]


def test_what_is_held_all_along_is_listed_with_all_its_buffers(step: Recording) -> None:
    parameter, output = memory_viewer([step], HBM)["indefiniteLifetimes"]
    assert parameter == {
        "sizeMib": 4,
        "attributes": ["entry computation parameter", "reusable"],
        "logicalBuffers": [{"shape": "f32[4]{0}", "sizeMib": 4, "hloName": "param"}],
        "commonShape": "f32[4]{0}",
    }
    assert output["id"] == "2"
    assert output["attributes"] == ["may-be live out", "reusable"]
    assert output["logicalBuffers"] == [
        {"id": "1", "shape": "f32[4]{0}", "sizeMib": 2, "hloName": "tuple", "shapeIndex": ["1", "0"]},
        {"id": "2", "shape": "f32[4]{0}", "sizeMib": 1, "hloName": "early", "shapeIndex": ["2"]},
    ]


def test_another_space_and_no_program(step: Recording) -> None:
    assert memory_viewer([step], VMEM) == {"moduleName": "jit_f", "entryComputationName": "main"}
    with pytest.raises(InputError, match="No compiled program"):
        memory_viewer([replace(step, program=None)], HBM)


def test_scoped_memory_is_vmem_s(step: Recording) -> None:
    assert step.program
    scoped = replace(step.program, scoped_bytes=3 * MIB, scoped_instruction="custom-call.7")
    in_vmem = replace(step, program=replace(scoped, memory_space=VMEM))
    answer = memory_viewer([step, in_vmem], VMEM)
    assert (answer["maxScopedVmemAllocationMib"], answer["maxScopedVmemInstructionName"]) == (3, "custom-call.7")
    assert "maxScopedVmemAllocationMib" not in memory_viewer([replace(step, program=scoped)], HBM)


@pytest.mark.parametrize("title", ["jit_train_step(0)", "jit_loss(2)"])
def test_fields_and_their_types_are_xprof_s(title: str, tmp_path: Path) -> None:
    pytest.importorskip("xprof")
    (program,) = [p for p in compiled_programs() if (p.profile, p.title) == ("train_step", title)]
    theirs = kinds(answer_of_xprof(program.data, tmp_path))
    ours = kinds(json.loads(json.dumps(memory_viewer(read_hlo(program.data, source="test"), HBM))))
    assert ours == theirs


def test_a_large_program_costs_objects_for_its_blocks_only() -> None:
    proto, truth = generate.generate(1501)
    answer = memory_viewer(read_hlo(proto.SerializeToString(), source="test"), HBM)
    blocks = [block for block in answer["bufferBlocks"] if block["logicalBufferId"] >= 0]
    held = sum(len(lifetime["logicalBuffers"]) for lifetime in answer["indefiniteLifetimes"])
    assert len(blocks) == len(answer["logicalBufferSpans"]) <= truth.logical_buffers - held
    assert answer["peakHeapMib"] * MIB == truth.peak_bytes
    assert answer["peakHeapSizePosition"] == truth.peak_position
