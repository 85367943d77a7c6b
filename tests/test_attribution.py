"""Whose memory it is: paths as JAX writes them, forests worked out by hand, and sums that hold at every level."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pytest
from allocators import Block, allocator
from hand_built import MIB, Handmade, read
from hypothesis import given
from hypothesis import strategies as st
from profiles import profiles
from recordings import Row, recording
from servers import DEMO
from test_payload import decode
from werkzeug.test import Client

from tb_memplugin.analysis.attribution import By, Forest, forest, weigh
from tb_memplugin.analysis.frames import callers_first
from tb_memplugin.analysis.liveset import live_rows
from tb_memplugin.analysis.paths import MAX_PARTS, Pass, argument_path, jitted_function, op_path
from tb_memplugin.analysis.trees import MAX_DEPTH, Grower, merge_layers
from tb_memplugin.analysis.usage import peak
from tb_memplugin.catalog import Catalog, listing_of_path
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.recording import Recording, Role, Stacks, Text

PASSES = {"F": Pass.FORWARD, "B": Pass.BACKWARD, "R": Pass.REMATERIALIZED, "O": Pass.OTHER}


@pytest.mark.parametrize(
    ("op_name", "within", "parts"),
    [
        ("jit(step)/jvp(layer_0)/attention/div", "F", "layer_0 attention div"),
        ("jit(step)/transpose(jvp(layer_0))/mlp/transpose", "B", "layer_0 mlp transpose"),
        ("jit(step)/jit(main)/transpose(jvp(Model))/layer_3/mlp/dot_general", "B", "Model layer_3 mlp dot_general"),
        ("jit(step)/transpose(layer_0)/mul", "B", "layer_0 mul"),
        ("jit(step)/jvp()/while/body/closed_call/attention/squeeze", "F", "attention squeeze"),
        ("jit(step)/transpose(jvp())/while/body/closed_call/checkpoint/mlp/add_any", "B", "mlp add_any"),
        ("jit(step)/transpose(jvp())/while/body/checkpoint/rematted_computation/mlp/mul", "R", "mlp mul"),
        ("jit(f)/transpose(jvp(a))/b/c/jvp(a)/b/c/checkpoint/mlp/mul", "B", "a b c mlp mul"),
        ("jit(f)/transpose(jvp(a))/jvp(a)/checkpoint/rematted_computation/mlp/mul", "R", "a mlp mul"),
        ("jit(f)/transpose(jvp(a))/b/jvp(a)/c/mul", "B", "a b a c mul"),  # nothing is repeated
        ("checkpoint/rematted_computation/attention/reduce_sum", "R", "attention reduce_sum"),
        ("jit(loss)/while/body/closed_call/checkpoint/mlp/rsqrt", "O", "mlp rsqrt"),
        ("jit(loss)/while", "O", "while"),
        ("jit(step)/jvp()/while/body/closed_call", "F", "closed_call"),
        ("jit(loss)/cond/branch_1_fun/mlp/tanh", "O", "mlp tanh"),
        ("jit(f)/body/cond/mul", "O", "body cond mul"),  # a user's own scopes
        ("jit(step)/transpose(jvp(jit(take_along_axis)))/scatter-add", "B", "take_along_axis scatter-add"),
        ("jit(f)/logits/jit(log_softmax)/exp", "O", "logits log_softmax exp"),
        ("jit(step)/transpose(jvp(bsd,de->bse))/dot_general", "B", "bsd,de->bse dot_general"),
        ("jit(step)/jvp(encoder/layer_1)/mul", "F", "encoder/layer_1 mul"),
        ("jit(step)/vmap(jvp(layer_2))/add", "F", "layer_2 add"),
        ("pmap(step)/jvp(h0_attn)/~/linear/dot_general", "F", "h0_attn linear dot_general"),
        ("jit(f)/custom_jvp_call/relu/max", "O", "relu max"),
        ("jit(f)/shard_map/mlp/psum", "O", "mlp psum"),
        ("gradient_tape/replica_1/bert/layer_3/MatMul", "B", "replica_1 bert layer_3 MatMul"),
        ("reduce_sum", "O", "reduce_sum"),
        ("jit(f)", "O", ""),
        ("", "O", ""),
        ("///", "O", ""),
        ("jit(f(/a/b", "O", "jit(f( a b"),  # never closed
        (")/a", "O", ") a"),
    ],
)
def test_op_names(op_name: str, within: str, parts: str) -> None:
    assert op_path(op_name) == (PASSES[within], tuple(parts.split()))


@pytest.mark.parametrize(
    ("op_name", "within", "parts"),
    [
        ("jit(step)/(transpose(jvp(l0))/dot:transpose(jvp(l1))/dot)", Pass.BACKWARD, ("2 combined",)),
        (
            "jit(step)/(transpose(jvp(l0))/mlp/dot:transpose(jvp(l0))/mlp/sum)",
            Pass.BACKWARD,
            ("l0", "mlp", "2 combined"),
        ),
        ("jit(step)/(jvp(l0)/dot:add:mul)", Pass.OTHER, ("3 combined",)),
        ("jit(step)/(jvp(l0)/dot", Pass.OTHER, ("(jvp(l0)", "dot")),
    ],
)
def test_one_instruction_for_several_is_where_they_all_are(op_name: str, within: Pass, parts: tuple[str, ...]) -> None:
    assert op_path(op_name) == (within, parts)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("params['layer_3']['mlp']['up']", "params layer_3 mlp up"),
        ('params["layer_3"]["mlp"]', "params layer_3 mlp"),
        ("state.params.w", "state params w"),
        ("args[0]['x']", "args [0] x"),
        ("opt_state[0].mu['blocks'][3]", "opt_state [0] mu blocks [3]"),
        ("params['encoder/~/linear_1']['w']", "params encoder linear_1 w"),
        (r"params['it\'s']['w']", r"params it\'s w"),
        ("x", "x"),
        ("", ""),
        ("['", "'"),
    ],
)
def test_pytree_paths(path: str, parts: str) -> None:
    assert argument_path(path) == tuple(parts.split())


@given(st.text(alphabet="ab/()[]'\".~\\_01 jitvptranse", max_size=60))
def test_no_text_breaks_a_path(text: str) -> None:
    for parts in (op_path(text).parts, argument_path(text)):
        assert all(parts) and "".join(parts).count("a") <= text.count("a")
    assert jitted_function(text) in text


def test_paths_are_bounded() -> None:
    assert len(op_path("a/" * 100_000).parts) == MAX_PARTS + 1
    assert len(argument_path("a" + ".a" * 100_000)) == MAX_PARTS + 1
    assert len(op_path("transpose(jvp(a))/" + "jvp(b)/" * 100_000).parts) == MAX_PARTS + 1
    assert op_path("jvp(" * 100_000 + ")" * 100_000).within is Pass.FORWARD


def test_the_innermost_jitted_function() -> None:
    assert jitted_function("jit(step)/jit(main)/transpose(jvp(jit(_where)))/select_n") == "_where"
    assert jitted_function("jit(step)/jit(main)/mul") == "step"
    assert jitted_function("mul") == ""


def drawn(of: Forest, weights: Sequence[int] | None = None) -> list[str]:
    """The nodes as an indented list; `*3` after what was merged, and what each weighs, where it weighs something."""
    depth: list[int] = []
    lines = []
    for node, parent in enumerate(of.parent.tolist()):
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
        merged = f" x{of.merged[node]}" if of.merged[node] > 1 else ""
        weight = f" {weights[node]}" if weights is not None else ""
        lines.append(f"{'  ' * depth[node]}{of.label[node]}{merged}{weight}")
    return lines


def program(rows: Sequence[tuple[str, str, int]], role: Role = Role.TEMPORARY) -> Recording:
    """Rows of (op, op_name, bytes), all live at position 0."""
    made = recording([Row(size, 0, 1, role=role) for _, _, size in rows], 1)
    named = dataclasses.replace(
        made.allocations, op=Text.of([op for op, _, _ in rows]), scope=Text.of([scope for _, scope, _ in rows])
    )
    return dataclasses.replace(made, allocations=named)


def weights(of: Recording, found: Forest) -> list[int]:
    rows = live_rows(of, peak(of).position)
    inclusive: list[int] = weigh(found, rows, of.allocations.charge[rows]).tolist()
    return inclusive


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
    found = forest(of, By.MODEL)
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
    found = forest(of, By.MODEL, merge=True)
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
        # The items of an optimizer's state are different things.
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
    grower = Grower()
    leaf = np.array([grower.path(path.split("/")) for path in paths], dtype=np.int32)
    assert drawn(merge_layers(grower, leaf)) == merged


def test_without_a_backward_pass_all_is_forward() -> None:
    assert drawn(forest(program([("dot", "jit(f)/mlp/dot", 1)]), By.MODEL)) == ["forward", "  mlp", "    dot"]


def test_the_arguments_of_a_reduction_are_none_of_the_programs() -> None:
    of = program([("parameter", "jit(f)/sum", 8), ("fusion", "jit(f)/sum", 4)], Role.THREAD_LOCAL)
    assert drawn(forest(of, By.MODEL)) == ["forward", "  sum"]


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
    found = forest(of, By.MODEL)
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
    assert drawn(forest(of, By.MODEL)) == ["constants", "  mlp", "    pi"]
    assert drawn(forest(of, By.SOURCE)) == ["constants"]
    assert drawn(forest(of, By.FUNCTION)) == ["constants"]


def with_frames(of: Recording, frames: Sequence[tuple[int, str, str]], stack: Sequence[int]) -> Recording:
    """Frames as (parent, function, file), their line 10 x their number."""
    stacks = Stacks(
        parent=np.array([parent for parent, _, _ in frames], np.int32),
        function=Text.of([function for _, function, _ in frames]),
        file=Text.of([file for _, _, file in frames]),
        line=np.arange(len(frames), dtype=np.int32) * 10,
    )
    rows = dataclasses.replace(of.allocations, stack=np.array(stack, np.int32))
    return dataclasses.replace(of, stacks=stacks, allocations=rows)


FRAMES = [
    (-1, "main", "train.py"),
    (0, "PjitFunction(step)", ""),
    (1, "cache_miss", "/venv/lib/python3.12/site-packages/jax/_src/pjit.py"),
    (2, "loss", "/home/me/jax/model.py"),
    (3, "shard_args", "pxla.py"),
    (4, "_array_shard_arg", "array.py"),  # JAX's, since JAX's calls it
    (0, "mine", "array.py"),
    (1, "Execute", ""),
]


def test_source_leaves_frameworks_out_and_the_stack_marks_them() -> None:
    of = with_frames(program([("fusion", "jit(step)/mul", 2**i) for i in range(4)]), FRAMES, [5, 6, 7, -1])
    by_source = forest(of, By.SOURCE)
    assert drawn(by_source, weights(of, by_source)) == [
        "main (train.py:0) 7",
        "  loss (/home/me/jax/model.py:30) 1",
        "  mine (array.py:60) 2",
        "no Python line 8",
    ]
    by_stack = forest(of, By.STACK)
    foreign = [bool(flag) for flag in by_stack.framework]
    assert list(zip(drawn(by_stack, weights(of, by_stack)), foreign, strict=True)) == [
        ("main (train.py:0) 7", False),
        ("  PjitFunction(step) 5", True),
        ("    cache_miss (/venv/lib/python3.12/site-packages/jax/_src/pjit.py:20) 1", True),
        ("      loss (/home/me/jax/model.py:30) 1", False),
        ("        shard_args (pxla.py:40) 1", True),
        ("          _array_shard_arg (array.py:50) 1", True),
        ("    Execute 4", True),
        ("  mine (array.py:60) 2", False),
        ("no stack 8", False),
    ]


def test_by_jitted_function_and_then_by_line() -> None:
    of = with_frames(
        program(
            [
                ("fusion", "jit(step)/mul", 1),
                ("fusion", "jit(step)/jvp(jit(_where))/add", 2),
                ("fusion", "", 4),
                ("parameter", "x", 8),
                ("fusion", "jit(step)/mul", 16),
            ]
        ),
        FRAMES,
        [4, 6, -1, -1, 2],
    )
    found = forest(of, By.FUNCTION)
    assert drawn(found, weights(of, found)) == [
        "step 17",
        "  loss (/home/me/jax/model.py:30) 1",
        "  main (train.py:0) 16",
        "_where 2",
        "  mine (array.py:60) 2",
        "no jitted function 4",
        "  no Python line 4",
        "arguments 8",
    ]


def test_an_allocator_by_jitted_function_and_what_was_there_before() -> None:
    of = allocator([Block("step", 8, 0, None, stack=1), Block("", 4, 0, None), Block("old", 2, -1, None)], 1)
    for by, expected in {
        By.MODEL: ["no model path 12", "  step 8", "  unnamed 4", "live before the recording 2"],
        By.SOURCE: [
            "main (train.py:10) 8",
            "  layer (model.py:20) 8",
            "no Python line 4",
            "live before the recording 2",
        ],
        By.FUNCTION: [
            "step 8",
            "  layer (model.py:20) 8",
            "no jitted function 4",
            "  no Python line 4",
            "live before the recording 2",
        ],
    }.items():
        found = forest(of, by)
        assert drawn(found, weights(of, found)) == expected


def test_where_no_line_is_known_the_runtime_s_call_stands_in() -> None:
    frames = [(-1, "PjitFunction(step)", ""), (0, "Execute", ""), (1, "Build buffer allocations", "")]
    of = with_frames(allocator([Block("step", 8, 0, None), Block("step", 4, 0, None)], 1), frames, [2, 99])
    assert drawn(forest(of, By.FUNCTION)) == ["step", "  Build buffer allocations", "  no Python line"]


def test_an_array_that_is_named_for_its_line() -> None:
    """track() knows the line that made an array, and no more frames than that."""
    of = allocator([Block("train.py:61", 8, 0, None), Block("make.py:6", 4, 0, None, stack=1)], 1)
    assert drawn(forest(of, By.SOURCE)) == ["main (train.py:10)", "  layer (model.py:20)", "train.py:61"]
    assert drawn(forest(of, By.FUNCTION))[:2] == ["train.py:61", "  train.py:61"]


def test_tensorflow_names_what_belongs_to_a_gradient() -> None:
    names = ["replica_0/layer_1/MatMul:MatMul", "gradient_tape/replica_0/layer_1/Mul", "SameWorkerRecvDone"]
    of = allocator([Block(name, 1, 0, None) for name in names], 1)
    unjitted = dataclasses.replace(of, allocations=dataclasses.replace(of.allocations, scope=Text.of([""] * 3)))
    assert drawn(forest(unjitted, By.MODEL)) == [
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
    assert drawn(forest(of, By.MODEL)) == [
        "forward and update",
        "  bmm",
        "  exp",
        "backward",
        "  BmmBackward0",
        "    bmm",
    ]


def test_roles_shapes_and_types() -> None:
    of = recording([Row(8, 0, 1), Row(4, 0, 1, role=Role.OUTPUT)], 1)
    assert drawn(forest(of, By.ROLE)) == ["temporary", "  f32[4]{0}", "output", "  f32[4]{0}"]
    assert drawn(forest(of, By.SHAPE)) == ["f32[4]{0}"]
    assert drawn(forest(of, By.DTYPE)) == ["f32", "  f32[4]{0}"]


def test_a_forest_is_made_once() -> None:
    of = program(STEP)
    assert forest(of, By.MODEL) is forest(of, By.MODEL)
    assert forest(of, By.SOURCE, merge=True) is forest(of, By.SOURCE)


def test_stacks_of_a_broken_file() -> None:
    circle = [(1, "a", "a.py"), (0, "b", "b.py"), (99, "c", "c.py")]
    of = with_frames(program([("fusion", "", 1)] * 3), circle, [0, 2, 77])
    assert drawn(forest(of, By.SOURCE)) == ["b (b.py:10)", "  a (a.py:0)", "c (c.py:20)", "no Python line"]
    deep = [(i - 1, "f", "f.py") for i in range(10_000)]
    found = forest(with_frames(program([("fusion", "", 1)]), deep, [9_999]), By.STACK)
    assert len(found.parent) == MAX_DEPTH + 1


def test_each_frame_once_and_after_its_caller() -> None:
    stacks = with_frames(program([]), FRAMES, []).stacks
    order = [at.frame for at in callers_first(stacks, [7, 5, 5, 4])]
    assert order == [0, 1, 7, 2, 3, 4, 5]


def test_weights_of_bytes_times_lifetime_may_be_fractions() -> None:
    of = program(STEP[:2])
    found = forest(of, By.MODEL)
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
    grower = Grower()
    leaf = np.array([grower.path(path) for path in paths], dtype=np.int32)
    found = merge_layers(grower, leaf) if merged else grower.forest(leaf)
    keeps_to(found)
    assert found.merged.sum() == len(grower.parent)
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
    """Preorder: everything from a node to its end, and nothing else, is below it."""
    n = len(of.parent)
    assert len(of.label) == len(of.end) == len(of.merged) == len(of.framework) == n
    for node in range(n):
        below = [other for other in range(n) if node in ancestors(of, other)]
        assert below == list(range(node, of.end[node]))
    assert ((of.leaf >= -1) & (of.leaf < n)).all()


@cache
def real() -> list[Recording]:
    return [found.complete for path in profiles() for found in listing_of_path(str(path)).recordings]


@pytest.mark.parametrize("by", By)
@pytest.mark.parametrize("merged", [False, True])
def test_the_levels_of_real_profiles_sum_up_to_what_is_live(by: By, merged: bool) -> None:
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
    found = forest(of, By.MODEL, merge=True)
    assert meta == {"by": "model", "merge": True}
    assert tables["tree"] == {
        "label": [found.label[node] for node in range(len(found.label))],
        "parent": found.parent.tolist(),
        "end": found.end.tolist(),
        "merged": found.merged.tolist(),
        "framework": found.framework.tolist(),
    }
    assert tables["leaf"] == {"node": found.leaf.tolist()}
