"""Scripts as users of each library write them: the step is found, and needs what a function by hand needs."""

from __future__ import annotations

import json
import runpy
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

from tb_memplugin.cli import main
from tb_memplugin.fit.compiling.program_memory import BESIDE

SCRIPTS = Path(__file__).parents[2] / "data" / "scripts"
LIBRARIES = {  # by the script: the packages that it needs
    "flax_linen": ("flax", "optax"),
    "flax_nnx": ("flax", "optax"),
    "equinox_mlp": ("equinox", "optax"),
    "haiku_mlp": ("haiku", "optax"),
    "keras_fit": ("keras",),
    "grain_loader": ("grain", "optax"),
    "hydra_config": ("hydra", "optax"),
}
PARAMETERS = 3 * (1024 * 1024 + 1024) * 4  # bytes
BY_HAND = """
import jax, jax.numpy as jnp

def step(devices, batch=8):
    def train_step(params, m, v, count, x):
        def loss(params):
            hidden = x
            for weight, bias in params:
                hidden = jax.nn.relu(hidden @ weight + bias)
            return (hidden**2).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradients)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, gradients)
        scale = 1 / (1 - 0.9**count)
        params = jax.tree.map(lambda p, m, v: p - 1e-3 * (scale * m / (v**0.5 + 1e-8) + 1e-4 * p), params, m, v)
        return params, m, v, count + 1, value

    place = jax.sharding.SingleDeviceSharding(devices[0])
    shaped = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=place)
    params = [(shaped(1024, 1024), shaped(1024)) for _ in range(3)]
    return jax.jit(train_step), (params, params, params, shaped(), shaped(batch, 1024))
"""


def record(folder: Path, step: str, *words: str, batch: int = 4096) -> dict[str, Any]:
    """Return the record of the only candidate, which is kept in a folder."""
    assert (
        main(["fit", step, "--on", "cpu:1", "--set", f"batch={batch}", "--no-cache", "--to", str(folder), *words]) == 0
    )
    (path,) = folder.glob("*/fit.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_script_of_a_library_needs_what_a_function_by_hand_needs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := [package for package in LIBRARIES[name] if find_spec(package) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    shutil.copytree(SCRIPTS, tmp_path / "scripts")
    monkeypatch.chdir(tmp_path / "scripts")
    (tmp_path / "by_hand.py").write_text(BY_HAND)
    by_hand = record(tmp_path / "by hand", f"{tmp_path / 'by_hand.py'}:step")
    line = "batch={batch}" if name == "hydra_config" else "{batch}"
    found = record(tmp_path / "found", f"{name}.py", "--", line)
    assert any("The step of the script is train_step (" in each for each in found["caveats"])
    assert found["roles_bytes"]["optimizer_state"] == pytest.approx(2 * PARAMETERS, rel=0.001)
    if name != "keras_fit":  # which has another loss, and donates its state
        of_program = found["reserved_bytes"] - found["roles_bytes"].get(BESIDE, 0)
        assert of_program == pytest.approx(by_hand["reserved_bytes"], rel=0.01)
    assert {path.name for path in (tmp_path / "scripts").iterdir()} == {path.name for path in SCRIPTS.iterdir()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Levanter uses names that JAX has deprecated
def test_levanters_trainer_needs_what_jax_says_of_its_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its step is lowered and compiled here as the trainer would, on the CPU's device."""
    haliax, trainers = pytest.importorskip("haliax"), pytest.importorskip("levanter.trainer")
    import jax
    from levanter.data.dataset import ListAsyncDataset  # type: ignore[import-not-found,unused-ignore]
    from levanter.models.lm_model import LmExample  # type: ignore[import-not-found,unused-ignore]
    from levanter.optim import AdamConfig  # type: ignore[import-not-found,unused-ignore]

    shutil.copy(SCRIPTS / "levanter_lm.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    found = record(tmp_path / "found", "levanter_lm.py", "--", "{batch}", batch=8)
    assert any("The step of the script is _train_step (" in each for each in found["caveats"])

    monkeypatch.setattr("sys.argv", ["levanter_lm.py", "8"])
    script = runpy.run_path("levanter_lm.py", run_name="parts")
    script["trainer_config"].initialize()
    example = LmExample.causal(haliax.zeros(script["config"].Pos, dtype=int))
    with trainers.Trainer(script["trainer_config"], AdamConfig().build(100), script["loss"]) as trainer:
        key = jax.random.key(0)
        state = trainer.initial_state(key, model_init=lambda: script["config"].build(script["Vocab"], key=key))
        loader = trainer.data_loader(ListAsyncDataset([example] * 64, is_complete=True))
        said = trainer._jit_train_step_fn.lower(state, (next(iter(loader)),), {}).compile().memory_analysis()
    needs = said.argument_size_in_bytes + said.output_size_in_bytes + said.temp_size_in_bytes
    of_program = found["reserved_bytes"] - found["roles_bytes"].get(BESIDE, 0)
    assert of_program == pytest.approx(needs - said.alias_size_in_bytes, rel=0.01)
