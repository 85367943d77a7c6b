"""Code in advice, run unchanged on train states of Flax linen and NNX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from support.advised import MIB, Tree, compiled, given

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.analysis.advice.jax.replication import CODE
from tb_memplugin.model.recording import Recording

pytest.importorskip("flax")
from flax import linen as nn
from flax import nnx
from flax.training.train_state import TrainState

WIDTH = 1024


def run(code: str, **names: Any) -> dict[str, Any]:
    """Run code with these names bound, as a script that has imported JAX and Optax."""
    bound = {"jax": jax, "jnp": jnp, "optax": optax, "NamedSharding": NamedSharding, "PartitionSpec": PartitionSpec}
    scope = bound | names
    exec(code, scope)
    return scope


class LinenModel(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(WIDTH)(nn.relu(nn.Dense(WIDTH)(x)))


def linen_state(optimizer: Any = None) -> TrainState:
    model = LinenModel()
    params = model.init(jax.random.key(0), jnp.zeros((1, WIDTH)))["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optimizer or optax.adam(1e-3))
    arrays: TrainState = jax.tree.map(jnp.asarray, state)
    return arrays


def linen_step(state: TrainState, batch: Any) -> Any:
    def loss(params: Tree) -> Any:
        return (state.apply_fn({"params": params}, batch) ** 2).mean()

    value, grads = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=grads), value


class NnxModel(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.up, self.down = (nnx.Linear(WIDTH, WIDTH, rngs=rngs) for _ in range(2))

    def __call__(self, x: Any) -> Any:
        return self.down(nnx.relu(self.up(x)))


def nnx_state(optimizer: Any = None) -> tuple[Any, Any]:
    """Return the static part and the arrays of a model with its optimizer."""
    model = NnxModel(nnx.Rngs(0))
    trained = nnx.Optimizer(model, optimizer or optax.adam(1e-3), wrt=nnx.Param)
    graph, state = nnx.split((model, trained))
    return graph, state


def nnx_step(graph: Any) -> Any:
    def step(state: Any, batch: Any) -> Any:
        model, optimizer = nnx.merge(graph, state)
        value, grads = nnx.value_and_grad(lambda model: (model(batch) ** 2).mean())(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), value

    return step


BATCH = jnp.zeros((16, WIDTH))
FRAMEWORKS = ("linen", "nnx")


def program_and_state(framework: str, optimizer: Any = None) -> tuple[Any, Any, Recording]:
    """Return a step, its state and the compiled program."""
    if framework == "linen":
        step, state = linen_step, linen_state(optimizer)
    else:
        graph, state = nnx_state(optimizer)
        step = nnx_step(graph)
    return step, state, compiled(step, jax.eval_shape(lambda: state), jax.ShapeDtypeStruct(BATCH.shape, BATCH.dtype))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_train_states_are_donated(framework: str) -> None:
    step, state, program = program_and_state(framework)
    piece = given(program, AdviceKind.DONATION)
    assert piece.bytes > 20 * MIB  # weights and two moments
    jitted = run(piece.change, **{step.__name__: step})[step.__name__]
    arrays = jax.tree.leaves(state)
    jitted(state, BATCH)
    assert all(array.is_deleted() for array in arrays if array.ndim > 1)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", ["adam", "momentum"])
def test_optimizers_of_train_states_store_bf16(framework: str, name: str) -> None:
    made = {"adam": optax.adam(1e-3), "momentum": optax.sgd(1e-3, momentum=0.9)}[name]
    _, _, program = program_and_state(framework, made)
    code = given(program, AdviceKind.DTYPE, "Store").change
    optimizer = run(code, optimizer=made, learning_rate=1e-3, momentum=0.9)["optimizer"]
    step, state, narrow = program_and_state(framework, optimizer)
    new, _ = jax.jit(step)(state, BATCH)
    dtypes = [leaf.dtype for leaf in jax.tree.leaves(new)]
    assert dtypes == [leaf.dtype for leaf in jax.tree.leaves(state)]
    assert dtypes.count(jnp.bfloat16) == 4  # two kernels and two biases
    assert AdviceKind.DTYPE not in {p.kind for p in _stored(narrow)}


def _stored(program: Recording) -> list[Any]:
    from tb_memplugin.analysis.advice import advise

    return [piece for piece in advise(program) if piece.title.startswith(("Store the first", "Store the momentum"))]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_train_states_are_sharded(framework: str) -> None:
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
    step, state, _ = program_and_state(framework)
    state = jax.device_put(state, NamedSharding(mesh, PartitionSpec()))
    state = run(CODE.format(axis="'data'", names="state", function="step"), state=state)["state"]
    split = [leaf.sharding.spec for leaf in jax.tree.leaves(state) if leaf.ndim > 1]
    assert len(split) == 6 and all("data" in spec for spec in split)
    out = jax.tree.map(lambda leaf: leaf.sharding, state)
    new, _ = jax.jit(step, out_shardings=(out, None))(state, BATCH)
    assert [leaf.sharding for leaf in jax.tree.leaves(new)] == jax.tree.leaves(out)
