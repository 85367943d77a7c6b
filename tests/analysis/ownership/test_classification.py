"""Forests of memory by owner: small ones computed by hand, and sums that match at every level."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.allocators import Block, allocator
from support.forests import drawn, program, weights
from support.hand_built import MIB, Handmade, read
from support.payload_decoder import decode
from support.profiles import profiles
from support.recordings import Row, recording
from support.servers import DEMO
from werkzeug.test import Client

from tb_memplugin.analysis.ownership.classification import Classification, Forest, forest, weigh
from tb_memplugin.analysis.ownership.forest import ForestBuilder, merge_layers
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

STEP = [
    ("parameter", "params['layer_0']['mlp']['up']", 1000),
    ("parameter", "params['layer_1']['mlp']['up']", 2000),
    ("parameter", "batch", 5),
    ("parameter", "", 7),
    ("fusion", "jit(step)/jvp(layer_0)/mlp/dot_general", 100),
    ("fusion", "jit(step)/jvp(layer_0)/mlp/tanh", 10),
    ("fusion", "jit(step)/jvp(layer_1)/mlp/dot_general", 200),
    ("fusion", "jit(step)/transpose(jvp(layer_1))/mlp/dot_general", 400),
    ("fusion", "jit(step)/adam/add", 50),
    ("copy", "params['layer_0']['mlp']['up']", 3000),
    ("copy", "batch", 1),
    ("copy", "", 60),
    ("", "", 2),
]


def test_a_training_step_by_model() -> None:
    of = program(STEP)
    found = forest(of, Classification.MODEL)
    assert drawn(found, weights(of, found)) == [
        "arguments 3012",
        "  params 3000",
        "    layer_0 1000",
        "      mlp 1000",
        "        up 1000",
        "    layer_1 2000",
        "      mlp 2000",
        "        up 2000",
        "  batch 5",
        "  no model path 7",
        "forward 310",
        "  layer_0 110",
        "    mlp 110",
        "      dot_general 100",
        "      tanh 10",
        "  layer_1 200",
        "    mlp 200",
        "      dot_general 200",
        "backward 400",
        "  layer_1 400",
        "    mlp 400",
        "      dot_general 400",
        "update and other 50",
        "  adam 50",
        "    add 50",
        "copies of arguments 3001",
        "  params 3000",
        "    layer_0 3000",
        "      mlp 3000",
        "        up 3000",
        "  batch 1",
        "no model path 62",
        "  copy 60",
        "  unnamed 2",
    ]


def test_layers_that_repeat_become_one() -> None:
    of = program(STEP)
    found = forest(of, Classification.MODEL, merge=True)
    assert drawn(found, weights(of, found))[:12] == [
        "arguments 3012",
        "  params 3000",
        "    layer_* x2 3000",
        "      mlp x2 3000",
        "        up x2 3000",
        "  batch 5",
        "  no model path 7",
        "forward 310",
        "  layer_* x2 310",
        "    mlp x2 310",
        "      dot_general x2 300",
        "      tanh 10",
    ]


@pytest.mark.parametrize(
    ("paths", "merged"),
    [
        (["blocks/[0]/w", "blocks/[1]/w", "blocks/[2]/w"], ["blocks", "  [*] x3", "    w x3"]),
        # The items of an optimizer's state are separate entries.
        (["state/[0]/mu", "state/[1]/count"], ["state", "  [0]", "    mu", "  [1]", "    count"]),
        (["args/[0]", "args/[1]"], ["args", "  [0]", "  [1]"]),
        (["weights/[0]", "weights/[1]"], ["weights", "  [*] x2"]),
        (["decoder/5/up", "decoder/6/up", "decoder/7/down"], ["decoder", "  * x3", "    up x2", "    down"]),
        (["mlp/w1", "mlp/w2"], ["mlp", "  w1", "  w2"]),
        (["h0/w1", "h1/w1"], ["h* x2", "  w1 x2"]),
        (["bf16_block_1/x", "bf16_block_2/x"], ["bf16_block_* x2", "  x x2"]),
        (["layer_0/x", "embedding/x"], ["layer_0", "  x", "embedding", "  x"]),
        (["a_1/b_1/x", "a_1/b_2/x", "a_2/b_1/x"], ["a_* x2", "  b_* x3", "    x x3"]),
    ],
)
def test_what_merges(paths: list[str], merged: list[str]) -> None:
    builder = ForestBuilder()
    leaf = np.array([builder.path(path.split("/")) for path in paths], dtype=np.int32)
    assert drawn(merge_layers(builder, leaf)) == merged


def test_a_name_with_a_star_merges_with_the_layers_that_it_resembles() -> None:
    builder = ForestBuilder()
    leaf = np.array([builder.path((layer, "mlp")) for layer in ("layer_1", "layer_*", "layer_2")], dtype=np.int32)
    assert drawn(merge_layers(builder, leaf)) == ["layer_* x3", "  mlp x3"]


def test_without_a_backward_pass_all_is_forward() -> None:
    assert drawn(forest(program([("dot", "jit(f)/mlp/dot", 1)]), Classification.MODEL)) == [
        "forward",
        "  mlp",
        "    dot",
    ]


def test_the_arguments_of_a_reduction_are_none_of_the_programs() -> None:
    of = program([("parameter", "jit(f)/sum", 8), ("fusion", "jit(f)/sum", 4)], Role.THREAD_LOCAL)
    assert drawn(forest(of, Classification.MODEL)) == ["forward", "  sum"]


def test_a_copy_without_a_path_is_of_what_it_copies() -> None:
    made = Handmade()
    weights = made.instruction("weights", opcode="parameter")
    copied = made.instruction("copied", [weights], opcode="copy")
    again = made.instruction("again", [copied], opcode="transpose")
    product = made.instruction("product", [again])
    moved = made.instruction("moved", [product], opcode="convert")
    both = made.instruction("both", [moved, again], opcode="copy")
    plain = made.instruction("plain", [both])
    names = {weights: "params['w']", product: "jit(f)/mlp/dot"}
    for instruction in made.computation.instructions:
        instruction.metadata.op_name = names.get(instruction.id, "").encode()
        allocation = made.allocation((made.buffer(instruction.id, MIB), 0), size=MIB)
        if instruction.id == weights:
            allocation.is_entry_computation_parameter = True
    assert plain == 7
    of = read(made)
    found = forest(of, Classification.MODEL)
    total = weigh(found, np.arange(len(of.allocations)), of.allocations.size // MIB)
    assert drawn(found, total.tolist()) == [
        "arguments 1",
        "  params 1",
        "    w 1",
        "copies of arguments 2",
        "  params 2",
        "    w 2",
        "forward 2",
        "  mlp 2",
        "    dot 2",
        "no model path 2",
        "  copy 1",  # of two things at once
        "  fusion 1",
    ]


def test_constants_are_apart() -> None:
    of = program([("constant", "jit(f)/mlp/pi", 8), ("constant", "", 4)], Role.CONSTANT)
    assert drawn(forest(of, Classification.MODEL)) == ["constants", "  mlp", "    pi"]
    assert drawn(forest(of, Classification.SOURCE)) == ["constants"]
    assert drawn(forest(of, Classification.FUNCTION)) == ["constants"]


def test_tensorflow_names_what_belongs_to_a_gradient() -> None:
    names = ["replica_0/layer_1/MatMul:MatMul", "gradient_tape/replica_0/layer_1/Mul", "SameWorkerRecvDone"]
    of = allocator([Block(name, 1, 0, None) for name in names], 1)
    unjitted = dataclasses.replace(of, allocations=dataclasses.replace(of.allocations, op_name=Text.of([""] * 3)))
    assert drawn(forest(unjitted, Classification.MODEL)) == [
        "forward and update",
        "  replica_0",
        "    layer_1",
        "      MatMul",
        "backward",
        "  replica_0",
        "    layer_1",
        "      Mul",
        "no model path",
        "  SameWorkerRecvDone",
    ]


def test_pytorch_names_the_node_of_its_backward_graph() -> None:
    of = allocator([Block(name, 1, 0, None) for name in ("bmm", "BmmBackward0: bmm", "exp")], 1)
    assert drawn(forest(of, Classification.MODEL)) == [
        "forward and update",
        "  bmm",
        "  exp",
        "backward",
        "  BmmBackward0",
        "    bmm",
    ]


def test_roles_shapes_and_types() -> None:
    of = recording([Row(8, 0, 1), Row(4, 0, 1, role=Role.OUTPUT)], 1)
    assert drawn(forest(of, Classification.ROLE)) == ["temporary", "  f32[4]{0}", "output", "  f32[4]{0}"]
    assert drawn(forest(of, Classification.SHAPE)) == ["f32[4]{0}"]
    assert drawn(forest(of, Classification.DTYPE)) == ["f32", "  f32[4]{0}"]


def test_a_forest_is_made_once() -> None:
    of = program(STEP)
    assert forest(of, Classification.MODEL) is forest(of, Classification.MODEL)
    assert forest(of, Classification.SOURCE, merge=True) is forest(of, Classification.SOURCE)


def test_weights_of_bytes_times_lifetime_may_be_fractions() -> None:
    of = program(STEP[:2])
    found = forest(of, Classification.MODEL)
    assert weigh(found, np.array([0, 1]), np.array([0.5, 0.25])).tolist() == [
        0.75,
        0.75,
        0.5,
        0.5,
        0.5,
        0.25,
        0.25,
        0.25,
    ]
    assert weigh(found, np.array([], np.int64), np.array([], np.int64)).tolist() == [0] * 8


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "l_0", "l_1", "[0]", "[1]"]), min_size=1, max_size=5), min_size=1),
    st.booleans(),
)
def test_what_every_forest_keeps_to(paths: list[list[str]], merged: bool) -> None:
    builder = ForestBuilder()
    leaf = np.array([builder.path(path) for path in paths], dtype=np.int32)
    found = merge_layers(builder, leaf) if merged else builder.forest(leaf)
    keeps_to(found)
    assert found.merged.sum() == len(builder.parent)
    total = weigh(found, np.arange(len(paths)), np.ones(len(paths), np.int64))
    assert total[found.parent < 0].sum() == len(paths)
    if not merged:
        for path, node in zip(paths, found.leaf.tolist(), strict=True):
            assert [found.label[at] for at in ancestors(found, node)] == path[::-1]
            assert total[node] == sum(other[: len(path)] == path for other in paths)


def ancestors(of: Forest, node: int) -> Iterator[int]:
    while node >= 0:
        yield node
        node = int(of.parent[node])


def keeps_to(of: Forest) -> None:
    """Check preorder: the descendants of a node are exactly the nodes from it to its end."""
    n = len(of.parent)
    assert len(of.label) == len(of.end) == len(of.merged) == len(of.framework) == n
    for node in range(n):
        below = [other for other in range(n) if node in ancestors(of, other)]
        assert below == list(range(node, of.end[node]))
    assert ((of.leaf >= -1) & (of.leaf < n)).all()


@cache
def real() -> list[Recording]:
    return [found for path in profiles() for found in listing_of_path(str(path)).recordings]


@pytest.mark.parametrize("by", Classification)
@pytest.mark.parametrize("merged", [False, True])
def test_the_levels_of_real_profiles_sum_up_to_what_is_live(by: Classification, merged: bool) -> None:
    for of in real():
        found = forest(of, by, merged)
        assert (found.leaf >= 0).all()
        for position in {0, of.length // 2, peak(of).position}:
            rows = live_rows(of, position)
            total = weigh(found, rows, of.allocations.charge[rows])
            assert total[found.parent < 0].sum() == of.allocations.charge[rows].sum()
            own = np.bincount(found.leaf[rows], of.allocations.charge[rows], len(found.parent))
            below = np.zeros(len(found.parent))
            np.add.at(below, found.parent[found.parent >= 0], total[found.parent >= 0])
            assert (total == own + below).all()


def test_the_route_gives_the_forest_and_the_node_of_every_row() -> None:
    catalog = Catalog(str(DEMO))
    of = catalog.listing("train_step/cpu").recordings[0]
    answer = Client(MemoryApp(catalog)).get("/api/tree", query_string={"id": of.id, "by": "model", "merge": "1"})
    meta, tables = decode(answer.data)
    found = forest(of, Classification.MODEL, merge=True)
    assert meta == {"by": "model", "merge": True}
    assert tables["tree"] == {
        "label": [found.label[node] for node in range(len(found.label))],
        "parent": found.parent.tolist(),
        "end": found.end.tolist(),
        "merged": found.merged.tolist(),
        "framework": found.framework.tolist(),
    }
    assert tables["leaf"] == {"node": found.leaf.tolist()}
