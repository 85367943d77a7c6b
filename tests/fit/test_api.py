"""`fit` from Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from fit.steps import write_code

from tb_memplugin import fit
from tb_memplugin.errors import InputError
from tb_memplugin.fit.step.step_file import find_step

pytest.importorskip("jax")
SCRIPT = """
import jax
from tb_memplugin import fit

width = 64

def step(devices, batch=512, name="a"):
    return jax.jit(lambda x: x @ x.T), (jax.ShapeDtypeStruct((batch, width), "float32"),)

{call}
"""


def step(devices: Any, batch: int = 512) -> tuple[Any, Any]:
    import jax

    return jax.jit(lambda x: x @ x.T), (jax.ShapeDtypeStruct((batch, 64), "float32"),)


def made(width: int) -> Callable[..., Any]:
    def inner(devices: Any, batch: int = 512) -> tuple[Any, Any]:
        import jax

        return jax.jit(lambda x: x @ x.T), (jax.ShapeDtypeStruct((batch, width), "float32"),)

    return inner


def test_compiling_a_function_gives_its_outcome(tmp_path: Path) -> None:
    found = fit.compile(step, on="cpu:1", batch=1024, to=tmp_path)
    assert found.fits and (found.reserved_bytes or 0) >= 1024 * 1024 * 4
    assert repr(found).startswith("<step on cpu:1, batch=1024: fits, 0.0")
    assert len(list(tmp_path.glob("*/fit.json"))) == 1


def test_the_largest_value_of_a_knob_is_searched() -> None:
    found = fit.largest(step, on="cpu:1", vary={"batch": range(256, 2049, 256)}, budget="5MiB")
    assert [one.value for one in found] == [1024]
    assert "largest batch 1024" in repr(found)


def test_each_value_of_a_list_is_tried(tmp_path: Path) -> None:
    file = write_code(tmp_path, SCRIPT.format(call=""))
    found = fit.largest(file, on=["cpu:1"], vary={"name": ["a", "b"]}, set={"batch": 256})
    assert [dict(one.knobs)["name"] for one in found] == ["a", "b"]


def test_closures_and_lambdas_are_sent_by_cloudpickle() -> None:
    pytest.importorskip("cloudpickle")
    small, large = fit.compile(made(64), on="cpu:1"), fit.compile(made(4096), on="cpu:1")
    assert (large.reserved_bytes or 0) > (small.reserved_bytes or 0) > 0
    assert fit.compile(lambda devices: made(8)(devices), on="cpu:1").fits


def test_without_cloudpickle_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(InputError, match="pip install cloudpickle"):
        fit.compile(made(3), on="cpu:1")
    assert find_step(step).text.endswith(":step") and not find_step(step).pickled


def run_script(folder: Path, call: str) -> subprocess.CompletedProcess[str]:
    file = folder / "script.py"
    file.write_text(SCRIPT.format(call=dedent(call)))
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60, check=False)


def test_a_script_asks_about_its_own_function(tmp_path: Path) -> None:
    call = """
        if __name__ == "__main__":
            print(fit.compile(step, on="cpu:1", batch=256))
            print(fit.largest(step, on="cpu:1", vary={"batch": (256, 1024, 256)}, budget="3MiB")[0].value)
    """
    found = run_script(tmp_path, call)
    assert found.stderr == "" and "batch=256: fits" in found.stdout and found.stdout.splitlines()[1] == "768"


def test_a_script_without_a_guard_is_told_to_have_one(tmp_path: Path) -> None:
    found = run_script(tmp_path, 'print(fit.compile(step, on="cpu:1").error)')
    assert 'if __name__ == "__main__"' in found.stdout and "\n" not in found.stdout.strip()


def test_the_package_need_not_be_installed(tmp_path: Path) -> None:
    root = str(Path(fit.__file__).parent.parent.parent)
    code = f"import sys; sys.path.insert(0, {root!r})\n"
    code += SCRIPT.format(call='print(fit.compile("script:step", on="cpu:1", batch=256))')
    (tmp_path / "script.py").write_text(SCRIPT.format(call=""))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "batch=256: fits" in found.stdout, found.stderr


def test_an_interactive_function_is_compiled(tmp_path: Path) -> None:
    code = SCRIPT.format(call='print(fit.compile(step, on="cpu:1", batch=256))')
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "batch=256: fits" in found.stdout, found.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"on": "v9:2"}, "No such target"),
        ({"on": "cpu:1", "vary": {"batch": 3}}, "Not values"),
        ({"on": "cpu:1", "vary": {"batch": (9, 3)}}, "empty range"),
        ({"on": "cpu:1", "vary": {"batch": (1, 3), "other": (1, 3)}}, "Two ranges"),
        ({"on": "cpu:1", "vary": "nothing"}, "No range"),
    ],
)
def test_questions_that_make_no_sense_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        fit.largest(step, **arguments)


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys; from tb_memplugin import fit; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "jax", "google.protobuf", "distributed", "cloudpickle"} & set(loaded)


@pytest.mark.parametrize(
    ("code", "of_torch"),
    [
        ("import torch\ndef step(batch=8): ...", True),
        ("from torch.nn import Linear\nimport numpy\ndef step(): ...", True),
        ("import torch\nimport jax.numpy as jnp\ndef step(batch=8): ...", False),
        ("from torch.utils.data import DataLoader\nimport flax\ndef step(devices, batch=8): ...", False),
        ("def step(batch=8): ...", False),
    ],
)
def test_a_step_of_pytorch_is_known_by_its_imports(code: str, of_torch: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(code)
    assert find_step(f"{tmp_path / 'train.py'}:step").of_torch == of_torch
