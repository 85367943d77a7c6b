"""The pytest fixture, in a separate pytest that loads it as a user's pytest does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.servers import DEMO

from tb_memplugin import pytest_plugin
from tb_memplugin.capture import programs
from tb_memplugin.errors import InputError

TESTS = """
import jax, jax.numpy as jnp, pytest
from tb_memplugin.errors import InputError

DEMO = {demo!r}

def compiled():
    return jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((1024, 1024), jnp.float32)).compile()

def test_a_compiled_function_that_fits(memory_budget):
    memory_budget("8MiB").fits(compiled())  # 4 MiB in, 4 MiB out

def test_a_compiled_function_that_does_not(memory_budget):
    memory_budget("7MiB").fits(compiled())

def test_a_path_that_fits(memory_budget):
    memory_budget("2TiB").fits(DEMO)

def test_a_path_that_does_not(memory_budget):
    memory_budget("16GiB").fits(DEMO)

def test_only_what_is_named_counts(memory_budget):
    memory_budget("16GiB").fits(DEMO, recording="^train_step/")

def test_a_mistake_is_no_pass(memory_budget):
    with pytest.raises(InputError, match="No recordings to check"):
        memory_budget("16GiB").fits(DEMO, recording="no such recording")
    with pytest.raises(InputError, match="Not a compiled function"):
        memory_budget("16GiB").fits(3)
    with pytest.raises(InputError, match="Ambiguous size"):
        memory_budget("16G")
"""


def fail(*_: object) -> None:
    raise AssertionError


@pytest.mark.parametrize("subject", ["logdir", object()])
def test_a_check_that_fails_is_an_error_and_no_budget(subject: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest_plugin, "_check_path", fail)
    monkeypatch.setattr(programs, "_recordings", fail)
    with pytest.raises(InputError, match="The budget could not be checked"):
        pytest_plugin.Budget(1).fits(subject)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    folder = tmp_path_factory.mktemp("users")
    (folder / "test_memory.py").write_text(TESTS.format(demo=str(DEMO)))
    # Named explicitly, because this copy may not be installed with its entry points.
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tb_memplugin.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-rA",
    ]
    root = str(Path(__file__).parent.parent)
    return subprocess.run(
        [*command, str(folder)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PYTHONPATH": root, "JAX_PLATFORMS": "cpu", "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )


def test_budgets_that_hold_pass_and_those_that_break_fail(result: subprocess.CompletedProcess[str]) -> None:
    lines = result.stdout.splitlines()
    passed = {line.rpartition("::")[2] for line in lines if line.startswith("PASSED ")}
    failed = {line.partition("::")[2].split(" ")[0] for line in lines if line.startswith("FAILED ")}
    assert failed == {"test_a_compiled_function_that_does_not", "test_a_path_that_does_not"}, result.stdout
    assert len(passed) == 4


def test_a_failure_explains_itself(result: subprocess.CompletedProcess[str]) -> None:
    assert "needs 8.00 MiB of HBM, 1.00 MiB more than 7.00 MiB" in result.stdout
    assert "50.0%  input" in result.stdout
    assert "Above 16.0 GiB by 984 GiB: oom/cpu|localhost|jit_oom(0)|HBM reserves 0.98 TiB" in result.stdout
    assert "pytest_plugin.py" not in result.stdout  # the traceback has no line of our plugin


def test_the_entry_point_is_declared() -> None:
    project = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\ntb_memplugin = "tb_memplugin.pytest_plugin"' in project
