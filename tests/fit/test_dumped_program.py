"""Programs of a dump, compiled again: unchanged, and with changes that their step could have had."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("jax")

from fit.steps import DUMPED_STEP, compile_here, compile_step, dumped, write_code

from tb_memplugin.errors import InputError
from tb_memplugin.fit.compile_task import CompileTask
from tb_memplugin.fit.step.dumped_shardings import as_shardy, has_named, shard_named_arguments
from tb_memplugin.fit.step.step_file import find_step
from tb_memplugin.fit.sweep import run_name
from tb_memplugin.model.fit import Candidate, Outcome


def changed(step: str, target: str, *changes: str) -> Outcome:
    return compile_here(CompileTask(Candidate(step, target, changes=changes))).outcome


needs_libtpu = pytest.mark.skipif(not find_spec("libtpu"), reason="needs libtpu")
needs_cuda = pytest.mark.skipif(not find_spec("jax_cuda12_plugin"), reason="needs JAX's CUDA plugin")
TARGETS = [
    "cpu:1", "cpu:4", pytest.param("v5e:2x2", marks=needs_libtpu), pytest.param("h100:4", marks=needs_cuda)
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_a_program_of_a_dump_reserves_what_its_step_does(target: str, tmp_path: Path) -> None:
    step = write_code(tmp_path, DUMPED_STEP.format(folder=str(tmp_path / "dump")))
    original = changed(step, target)
    program = dumped(tmp_path / "dump")
    assert (original.error, changed(program, target).reserved_bytes) == ("", original.reserved_bytes)
    tried = [
        ("donate:state",),
        *((f"shard:{axis}:state", *more) for axis in ("data", "4") for more in ((), ("donate:state",))),
    ]
    for changes in tried[:1] if target == "cpu:1" else tried:
        found = changed(program, target, *changes)
        assert (found.error, found.reserved_bytes) == ("", changed(step, target, *changes).reserved_bytes), changes
        assert (found.reserved_bytes or 0) < (original.reserved_bytes or 0), changes


def test_what_cannot_be_changed_is_one_line(tmp_path: Path) -> None:
    assert not changed(write_code(tmp_path, DUMPED_STEP.format(folder=str(tmp_path / "dump"))), "cpu:4").error
    program = dumped(tmp_path / "dump")
    assert "has state['m']['a'], state['m']['b'], " in changed(program, "cpu:4", "donate:weights").error
    for text in (
        changed(program, "cpu:4", "drop-unused").error,
        compile_step(program, target="cpu:4", batch=8).outcome.error,
    ):
        assert "has no knobs, and keeps unused arguments" in text
    assert "Nothing to split along the axis: 3" in changed(program, "cpu:4", "shard:3:state").error
    assert "at least 4 devices" in changed(program, "cpu:2").error


NAMED = """module @jit_f {
  func.func @main(%arg0: tensor<8x4xf32> {jax.buffer_donor = true, mhlo.sharding = "{mesh['x'=2,'y'=2], [{'x'}, {}]}"},
                  %arg1: tensor<f32> {mhlo.sharding = "{replicated}"})
      -> (tensor<8x4xf32> {mhlo.sharding = "{mesh['x'=2,'y'=2], [{'x'}, {}]}"}) {
    %0 = stablehlo.reshape %arg0 {mhlo.sharding = "{mesh['x'=2,'y'=2], [{'x'}, {}]}"}
      : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}"""


def test_shardings_of_newer_jax_are_split_and_become_those_of_shardy() -> None:
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    with make_ir_context():
        module = ir.Module.parse(NAMED)
        assert has_named(ir.SymbolTable(module.operation)["main"])
        shard_named_arguments(ir, module, [0], "y")
        text = str(ir.Module.parse(as_shardy(str(module.operation.get_asm()))))
        with pytest.raises(InputError, match="Nothing to split along the axis: y"):
            shard_named_arguments(ir, module, [0, 1], "y")
    assert '@mesh_0 = <["x"=2, "y"=2]>' in text and "mhlo.sharding" not in text and "jax.buffer_donor" in text
    assert text.count('#sdy.sharding<@mesh_0, [{"x"}, {"y"}]>') == 2  # of an argument and a result
    assert '#sdy.sharding_per_value<[<@mesh_0, [{"x"}, {"y"}]>]>' in text


ON_THE_HOST = """
import jax, jax.numpy as jnp
from jax.sharding import SingleDeviceSharding

def step(devices):
    device, host = (SingleDeviceSharding(devices[0], memory_kind=kind) for kind in ("device", "pinned_host"))
    given = (jax.ShapeDtypeStruct((2048, 2048), jnp.float32, sharding=each) for each in (host, device))
    train = lambda m, x: jax.device_put(jax.device_put(m, device) * 0.9 + x.T @ x, host)
    lowered = jax.jit(train, out_shardings=host).lower(*given)
    lowered.compile({{"xla_dump_to": {folder!r}, "xla_dump_hlo_as_proto": True}})
    return lowered
"""


OLDER_PARTITIONER = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

def step(devices):
    jax.config.update("jax_use_shardy_partitioner", False)
    mesh = Mesh(np.array(devices), ("data",))
    columns, rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((None, "data"), ("data",)))
    shapes = ((2048, 2048), columns), ((4096, 2048), rows)
    given = [jax.ShapeDtypeStruct(shape, jnp.float32, sharding=each) for shape, each in shapes]
    lowered = jax.jit(lambda w, x: (w + jnp.tanh(x @ w).T @ x, x.sum())).lower(*given)
    lowered.compile({{"xla_dump_to": {folder!r}, "xla_dump_hlo_as_proto": True}})
    return lowered
"""


def test_the_older_partitioner_chooses_the_same_shardings_of_results(tmp_path: Path) -> None:
    step = write_code(tmp_path, OLDER_PARTITIONER.format(folder=str(tmp_path / "dump")))
    original = changed(step, "cpu:4")
    again = changed(dumped(tmp_path / "dump"), "cpu:4")
    assert (original.error, again.error) == ("", "")
    assert again.reserved_bytes == original.reserved_bytes


@needs_libtpu
def test_arguments_and_results_stay_in_their_memories(tmp_path: Path) -> None:
    step = write_code(tmp_path, ON_THE_HOST.format(folder=str(tmp_path / "dump")))
    original = changed(step, "v5e:1x1")
    again = changed(dumped(tmp_path / "dump"), "v5e:1x1")
    assert (original.error, again.error) == ("", "")
    assert again.reserved_bytes == original.reserved_bytes


@pytest.mark.parametrize(("content", "text"), [(b"\xff" * 99, "cannot be read"), (b"", "The file has no program")])
def test_a_damaged_program_is_one_line(content: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "module_0000.jit_f.before_optimizations.hlo.pb").write_bytes(content)
    step = dumped(tmp_path)
    assert find_step(step).text == step
    assert text in changed(step, "cpu:1").error


def test_programs_of_two_dumps_have_runs_of_their_own() -> None:
    steps = (f"/logs/{folder}/module_0000.jit_f.before_optimizations.hlo.pb:jit_f" for folder in "ab")
    names = [run_name(Candidate(step, "v5e:2x2")) for step in steps]
    assert names == ["a.module_0000.jit_f.jit_f_v5e-2x2", "b.module_0000.jit_f.jit_f_v5e-2x2"]
