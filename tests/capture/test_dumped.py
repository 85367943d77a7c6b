"""Compiling with XLA's dump: on CPU everywhere, for TPU and GPU where their compilers are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from support.servers import REPOSITORY, TESTS

from tb_memplugin import capture
from tb_memplugin.analysis.usage.live_bytes import reserved_bytes
from tb_memplugin.capture import programs
from tb_memplugin.catalog.listing import listing_of_path

DUMPS = TESTS / "data" / "xla_dumps"


def lowered(n: int = 256) -> Any:
    shape = jax.ShapeDtypeStruct((n, n), jnp.float32)
    return jax.jit(lambda x: jnp.tanh(x @ x) @ x).lower(shape)


def test_a_compiled_program_runs_and_has_its_memory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = capture.compile(lowered())
    assert program(jnp.ones((256, 256))).shape == (256, 256)
    text = program.report()
    assert capsys.readouterr().out == text + "\n"
    assert "jit__lambda" in text and "in HBM: 768 KiB live at the peak" in text
    (recording,) = listing_of_path(str(capture.compiled(program, tmp_path))).recordings
    capture.assert_fits(program, reserved_bytes(recording))
    with pytest.raises(AssertionError, match="1 B more than"):
        capture.assert_fits(program, reserved_bytes(recording) - 1)
    with pytest.raises(ValueError, match="give a limit"):
        capture.assert_fits(program)


def test_the_dump_can_be_kept_and_is_a_run(tmp_path: Path) -> None:
    first = capture.compile(lowered(), dump_to=tmp_path)
    second = capture.compile(lowered(512), dump_to=tmp_path)
    assert first.dumped is not None and second.dumped is not None
    assert first.dumped.hlo_proto != second.dumped.hlo_proto
    assert len(listing_of_path(str(tmp_path)).recordings) == 2
    assert capture.report(tmp_path) == capture.report(second)


def test_a_compile_without_a_dump_has_the_executables_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_programs", lambda folder: [])  # as where the executable was cached
    program = capture.compile(lowered())
    assert program.dumped is None
    assert "in HBM: 768 KiB live at the peak" in program.report()


def test_a_dump_given_fits_or_not(tmp_path: Path) -> None:
    capture.assert_fits(DUMPS / "tpu_v5e")
    capture.assert_fits(DUMPS / "gpu_h100")
    with pytest.raises(AssertionError, match=r"needs 32\.8 GiB of HBM, 17\.1 GiB more than 15\.8 GiB"):
        capture.assert_fits(DUMPS / "tpu_v5e_refused")
    with pytest.raises(ValueError, match="xla_dump_hlo_as_proto"):
        capture.report(tmp_path)
    (program,) = (DUMPS / "cpu_compressed").glob("*jit_evaluate.cpu_after_optimizations.hlo.pb.gz")
    assert "jit_evaluate" in capture.report(program)


def test_the_error_of_a_refused_program_keeps_the_compilers_and_names_the_buffers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused = next((DUMPS / "tpu_v5e_refused").glob("*after_optimizations.hlo.pb"))

    class Refusing:
        def compile(self, compiler_options: dict[str, Any]) -> None:
            folder = Path(compiler_options["xla_dump_to"])
            (folder / refused.name).write_bytes(refused.read_bytes())
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom")

    program: Any = Refusing()
    with pytest.raises(capture.CompileOutOfMemory, match="E1000") as caught:
        capture.compile(program)
    assert isinstance(caught.value, jax.errors.JaxRuntimeError)
    assert "CompileTimeHbmOom" in str(caught.value.__cause__)
    assert "jit(step)" in str(caught.value) and "32.8 GiB" in str(caught.value)
    assert "32.8 GiB" in caught.value.report()
    with pytest.raises(AssertionError):
        capture.assert_fits(caught.value, "20GiB")


def test_other_errors_of_the_compiler_stay_as_they_are() -> None:
    class Failing:
        def compile(self, compiler_options: dict[str, Any]) -> None:
            raise jax.errors.JaxRuntimeError("INTERNAL: no")

    program: Any = Failing()
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL: no") as caught:
        capture.compile(program)
    assert not isinstance(caught.value, capture.CompileOutOfMemory)


CODE = """
    import os, sys
    from programs.targets import target_devices
    from tb_memplugin.fit.compiling.child import ENVIRONMENT
    os.environ.update(ENVIRONMENT)
    import jax, jax.numpy as jnp
    from jax.sharding import SingleDeviceSharding
    from tb_memplugin import capture

    sharding = SingleDeviceSharding(target_devices(sys.argv[1])[0])
    def lowered(n):
        shape = jax.ShapeDtypeStruct((n, n), jnp.float32, sharding=sharding)
        return jax.jit(lambda x: jnp.tanh(x @ x) @ x).lower(shape)

    program = capture.compile(lowered(2048))
    assert "jit__lambda" in program.report()
    capture.assert_fits(program)
    try:
        capture.report(program.compiled)
    except ValueError as error:
        assert "capture.compile(lowered)" in str(error)
    if sys.argv[1] == "v5e":
        try:
            capture.compile(lowered(45_000))
        except capture.CompileOutOfMemory as error:
            assert "E1000" in str(error) and "GiB" in error.report()
        else:
            raise AssertionError("a program of 22 GiB compiled for 15.75 GiB")
"""


@pytest.mark.parametrize(("target", "compiler"), [("v5e", "libtpu"), ("h100", "jax_cuda12_plugin")])
def test_programs_for_accelerators_have_their_memory(target: str, compiler: str, tmp_path: Path) -> None:
    if find_spec(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    path = os.pathsep.join(map(str, (REPOSITORY, TESTS)))
    command = [sys.executable, "-c", textwrap.dedent(CODE), target]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path}, timeout=300)
