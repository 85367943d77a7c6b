"""The recipes in examples/recipes run, and their curves have the steps; those of missing packages are skipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.host_threads import spans
from support.markdown import inline_code
from support.servers import REPOSITORY

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.kinds import SpanKind

RECIPES = REPOSITORY / "examples" / "recipes"
PAGE = REPOSITORY / "docs" / "recipes.md"
NOT_RUN = {"maxtext_train"}
STEPS = 20
# No test machine has a GPU, so the counters of one are made up.
WITH_GPU = """
import itertools, runpy, sys
from types import SimpleNamespace
from tb_memplugin.capture.watching import counters
reading = itertools.count(1)
keys = [f"{name}_bytes.all.{which}" for name in ("allocated", "reserved") for which in ("current", "peak")]
cuda = SimpleNamespace(
    device_count=lambda: 1,
    memory_stats=lambda device: dict.fromkeys(keys, next(reading) << 20),
    get_device_properties=lambda device: SimpleNamespace(total_memory=1 << 34),
)
counters.started_torch = lambda: SimpleNamespace(cuda=cuda) if "torch" in sys.modules else None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [package for package in packages if find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


CASES = [
    pytest.param("flax_optax", "cpu:0", marks=needs("jax", "flax", "optax")),
    pytest.param("keras_callback", "cpu:0", marks=needs("jax", "keras")),
    pytest.param("torch_loop", "cuda:0", marks=needs("torch")),
    pytest.param("lightning_callback", "cuda:0", marks=needs("lightning")),
    pytest.param("transformers_callback", "cuda:0", marks=needs("transformers", "accelerate", "torch")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "device"), CASES)
def test_a_recipe_watches_each_step(recipe: str, device: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"}
    prepared = ["-c", WITH_GPU] if device == "cuda:0" else []
    done = subprocess.run(
        [sys.executable, *prepared, RECIPES / f"{recipe}.py", tmp_path / "logs"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = listing_of_path(str(tmp_path / "logs"))
    assert not found.problems
    [curve] = [recording for recording in found.recordings if recording.is_main_memory]
    assert (curve.memory, curve.is_live) == (device, False)
    assert re.fullmatch(rf"steps? (\d+ to )?{STEPS - 1}", spans(curve, SpanKind.STEP)[-1][0])


def test_every_recipe_is_documented_and_run_or_marked() -> None:
    files = {path.stem for path in RECIPES.glob("*.py")}
    assert files == {str(case.values[0]) for case in CASES} | NOT_RUN
    assert {f"examples/recipes/{name}.py" for name in files} <= set(inline_code(PAGE))
    for name in NOT_RUN:
        assert "Not run in the project's tests" in (RECIPES / f"{name}.py").read_text()


def test_code_on_the_page_is_that_of_the_recipes() -> None:
    """Each block on the page occurs in a recipe, apart from its indentation."""
    recipes = [_lines(path.read_text()) for path in RECIPES.glob("*.py")]
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text())
    assert len(blocks) >= len(CASES)
    for block in blocks:
        assert any("\n".join(_lines(block)) in "\n".join(recipe) for recipe in recipes), block


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
