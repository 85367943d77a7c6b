"""Scripts that are compiled as they are: their step is found, and needs what a function with `devices` needs."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

from tb_memplugin.cli import main

HEAD = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
WIDTH = 1536

def train_step(params, x):
    def loss(params):
        hidden = x
        for weight in params:
            hidden = jnp.tanh(hidden @ weight)
        return (hidden ** 2).mean()
    value, gradients = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

def init():
    return [jax.random.normal(key, (WIDTH, WIDTH)) for key in jax.random.split(jax.random.key(0), 8)]
"""
COMPILERS = {"cpu:4": "", "v5e:2x2": "libtpu", "h100:4": "jax_cuda12_plugin"}  # targets, with their packages
# The same step: a part of a function with `devices`, and of a script. Both define `make(devices)`.
MESHES = {
    "jit": """
def make(devices):
    place = jax.sharding.SingleDeviceSharding(devices[0])
    return jax.jit(train_step, donate_argnums=0), place, place
""",
    "shardings": """
def make(devices):
    mesh = Mesh(np.array(devices).reshape(2, 2), ("data", "model"))
    params, batch = NamedSharding(mesh, P(None, "model")), NamedSharding(mesh, P("data"))
    step = jax.jit(train_step, donate_argnums=0, out_shardings=(params, NamedSharding(mesh, P())))
    return step, params, batch
""",
    "chosen by the compiler": """
def make(devices):
    mesh = Mesh(np.array(devices), ("data",))
    return jax.jit(train_step, donate_argnums=0), NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
""",
    "shard_map": """
def make(devices):
    mesh = Mesh(np.array(devices), ("data",))
    def local(params, x):
        return jax.tree.map(lambda each: jax.lax.pmean(each, "data"), train_step(params, x))
    step = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data")), out_specs=P()), donate_argnums=0)
    return step, NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
""",
}
FUNCTION = """
def step(devices, batch=8):
    step, params, inputs = make(devices)
    state = jax.eval_shape(init)
    state = [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=params) for each in state]
    return step, (state, jax.ShapeDtypeStruct((batch, WIDTH), jnp.float32, sharding=inputs))
"""
SCRIPT = """
if __name__ == "__main__":
    step, place, inputs = make(jax.devices())
    params = jax.jit(init, out_shardings=place)()
    for count in range(100):
        x = jax.device_put(np.ones((int(sys.argv[1]), WIDTH), np.float32), inputs)
        params, loss = step(params, x)
        assert float(loss) == 1 and count < 1, "the step is neither executed nor called again"
"""


def fit(capsys: pytest.CaptureFixture[str], step: Path, *words: str) -> dict[str, Any]:
    """Return the answer about one candidate."""
    main(["fit", str(step), "--json", "--no-cache", *words])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def candidate(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["candidates"][0]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", MESHES)
@pytest.mark.parametrize("target", COMPILERS)
def test_a_script_needs_what_the_function_with_devices_needs(
    kind: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if COMPILERS[target]:
        pytest.importorskip(COMPILERS[target])
    function, script = tmp_path / "function.py", tmp_path / "train.py"
    function.write_text(HEAD + MESHES[kind] + FUNCTION)
    script.write_text(HEAD + MESHES[kind] + SCRIPT)
    exact = candidate(fit(capsys, Path(f"{function}:step"), "--on", target, "--set", "batch=64"))
    found = candidate(fit(capsys, script, "--on", target, "--set", "batch=64", "--", "{batch}"))
    assert found["error"] is None and found["reserved_bytes"] == exact["reserved_bytes"] > 8 << 20
    name = "local" if kind == "shard_map" else "train_step"
    assert any(f"The step of the script is {name} (9 arrays" in caveat for caveat in found["caveats"])
    assert any("for --jit: init (" in caveat for caveat in found["caveats"])


def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, *words: str) -> dict[str, Any]:
    """Return the candidate of a script whose end is given."""
    script = tmp_path / "train.py"
    script.write_text(HEAD + text)
    return candidate(fit(capsys, script, "--on", "cpu:1", *words))


LOOP = "params = jax.jit(init)()\nwhile True: params, loss = jax.jit(train_step)(params, jnp.ones((8, WIDTH)))\n"


@pytest.mark.slow
def test_jit_chooses_another_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(tmp_path, capsys, LOOP, "--jit", "jit_init")
    assert found["error"] is None and "The step of the script is init" in found["caveats"][1]


@pytest.mark.slow
def test_a_script_whose_large_results_fill_more_than_memory_takes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "make = jax.jit(lambda: jnp.ones((1 << 20, 1 << 18)))\n"
        "def step(x): return x * 2 + 1\n"
        "x = make()\nwhile True: x = jax.jit(step)(x)\n"
    )
    found = run(tmp_path, capsys, text, "--jit", "step", "--memory", "2GiB")
    assert found["error"] is None and found["reserved_bytes"] >= 2 << 40


@pytest.mark.slow
def test_what_a_script_writes_stays_in_a_temporary_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "checkpoints"
    text = f"""
import os
os.makedirs({str(folder / "a")!r})
with open({str(folder / "a" / "log.txt")!r}, "w") as file: file.write("step 0")
assert open({str(folder / "a" / "log.txt")!r}).read() == "step 0" and os.listdir({str(folder)!r}) == ["a"]
for change in (lambda: os.remove(__file__), lambda: os.rename(__file__, __file__ + "x")):
    try: change()
    except OSError: continue
    assert False
"""
    found = run(tmp_path, capsys, text + LOOP)
    assert found["error"] is None and not folder.exists()
    caveats = " ".join(found["caveats"])
    assert str(folder / "a" / "log.txt") in caveats
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["train.py"]


@pytest.mark.slow
def test_a_script_is_offline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        port = server.getsockname()[1]
        text = f"""
import socket
try: socket.create_connection(("127.0.0.1", {port}))
except OSError as error: assert "unreachable" in str(error)
else: assert False
"""
        found = run(tmp_path, capsys, text + LOOP)
        with pytest.raises(TimeoutError):
            server.accept()
    assert found["error"] is None and any("tried to reach: 127.0.0.1" in each for each in found["caveats"])


MISTAKES = {
    "import sys; sys.exit(2)": "The script ended with status 2 before its step",
    "import no_such_package": "imports no_such_package, which is not installed",
    "open('/no/such/data.bin')": "reads /no/such/data.bin, which is missing",
    "print(1)": "ended without calling a jitted function",
    "raise ValueError('a wrong shape')": "ValueError: a wrong shape (train.py:",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", MISTAKES)
def test_a_script_without_a_step_has_a_line(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert MISTAKES[text] in run(tmp_path, capsys, text)["error"]


@pytest.mark.slow
def test_a_name_that_no_function_has_is_answered_with_the_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = LOOP.replace("while True", "for _ in range(2)")
    error = run(tmp_path, capsys, text, "--jit", "trian_step")["error"]
    assert "no jitted function trian_step" in error and "train_step" in error


@pytest.mark.slow
def test_the_platform_is_that_of_the_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
assert jax.default_backend() == "cpu" and len(jax.devices("tpu")) == jax.device_count() == 1 and not sys.argv[1:]
jax.distributed.initialize("host:1234", 8, 0)
"""
    assert run(tmp_path, capsys, text + LOOP)["error"] is None


def test_calls_that_make_no_sense_have_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    for words, line in (
        ((str(script), "--on", "cpu:1", "--set", "batch=8", "--", "--batch=8"), "no place for a knob: batch"),
        ((f"{script}:step", "--on", "cpu:1", "--", "--batch=8"), "Not a script"),
        ((f"{script}:step", "--on", "cpu:1", "--jit", "step"), "Not a script"),
    ):
        assert main(["fit", *words]) == 2
        assert line in capsys.readouterr().err
