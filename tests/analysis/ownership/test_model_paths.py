"""Paths of operations and arguments, as JAX and TensorFlow write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_memplugin.analysis.ownership.model_paths import (
    MAX_PARTS,
    Pass,
    argument_path,
    jitted_function,
    op_path,
    op_paths,
)

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
        ("jit(f)/body/cond/mul", "O", "body cond mul"),  # scopes of the user
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


PIECES = [
    "", "jit(f)", "jit(main)", "main", "while", "body", "cond", "branch_1_fun", "layer_3", "jvp(layer_3)", "jvp()",
    "transpose(jvp(layer_3))", "transpose(jvp())", "transpose(f", "x)", "checkpoint", "rematted_computation", "add",
    "mul:add", "(a:b)", "gradients",
]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=9).map("/".join)))
def test_many_names_have_the_paths_of_each(op_names: list[str]) -> None:
    assert op_paths(op_names) == [op_path(each) for each in op_names]


@pytest.mark.slow
def test_paths_are_bounded() -> None:
    assert len(op_path("a/" * 100_000).parts) == MAX_PARTS + 1
    assert len(argument_path("a" + ".a" * 100_000)) == MAX_PARTS + 1
    assert len(op_path("transpose(jvp(a))/" + "jvp(b)/" * 100_000).parts) == MAX_PARTS + 1
    assert op_path("jvp(" * 100_000 + ")" * 100_000).training_pass is Pass.FORWARD


def test_the_innermost_jitted_function() -> None:
    assert jitted_function("jit(step)/jit(main)/transpose(jvp(jit(_where)))/select_n") == "_where"
    assert jitted_function("jit(step)/jit(main)/mul") == "step"
    assert jitted_function("mul") == ""


def test_a_jitted_function_may_be_named_as_tensorflow_names_gradients() -> None:
    assert op_path("jit(gradients)/jvp(mlp)/dot_general").training_pass is Pass.FORWARD
    assert op_path("jit(gradients)/transpose(jvp(mlp))/dot_general").training_pass is Pass.BACKWARD
    assert op_path("gradients/dense/MatMul").training_pass is Pass.BACKWARD
