"""Data of a script that is not there, and its files, processes and connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fit.script.test_scripts import LOOP, run

from tb_memplugin.errors import InputError
from tb_memplugin.fit.script.fake_input import parse_fake


def made(text: str) -> Any:
    return parse_fake(f"f={text}")[1]("any", arguments=1)


def test_a_type_is_made_of_ones() -> None:
    found = made("{image: float32[2,3], 'label': (int32[4*2], 7), rest: [bfloat16[8//4], bool]}")
    assert found["image"].shape == (2, 3) and found["image"].all() and found["image"].dtype == np.float32
    assert found["label"][0].shape == (8,) and found["label"][1] == 7
    assert str(found["rest"][0].dtype) == "bfloat16" and found["rest"][1].dtype == bool


def test_an_iterator_is_endless_and_a_number() -> None:
    found = made("iter(int32[2], 5)")
    assert next(iter(found.repeat().shuffle(3))).shape == (2,)
    assert [each.shape for each, _ in zip(found, range(3), strict=False)] == [(2,)] * 3
    assert found.info.splits["train"].num_examples // 2 == 2 and len(found) == 5
    first, second = made("(iter(int32[1]), iter(int32[1], 9))")
    assert first + 0 == 1_000_000 and second.vocab_size() == 9


@pytest.mark.parametrize(
    "text", ["f", "f=", "f=open('x')", "f=int32[x]", "f=int32[-1]", "f=nothing[3]", "a b=int32", "f=iter()", "f=1**9"]
)
def test_other_texts_have_a_line(text: str) -> None:
    with pytest.raises(InputError, match="FUNCTION=TYPE"):
        parse_fake(text)


pytest.importorskip("jax")


@pytest.mark.slow
def test_functions_of_the_script_and_of_modules_return_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pipeline.py").write_text("class Data:\n    def batches(self): raise OSError('no data')\n")
    text = """
from pipeline import Data
def load(path): return open(path).read()
class Own:
    def size(self): raise OSError("no data")
params = jax.jit(init)()
assert load("/no/such").shape == (8, WIDTH) and Own().size() == 3
for batch in Data().batches(): params, loss = jax.jit(train_step)(params, batch["x"])
"""
    fakes = ("load=float32[8,1536]", "pipeline.Data.batches=iter({x: float32[8,1536]})", "Own.size=3")
    words = [word for fake in fakes for word in ("--fake-input", fake)]
    found = run(tmp_path, capsys, text, *words, "--")
    assert found["error"] is None and any("step of the script is train_step" in each for each in found["caveats"])
    error = run(tmp_path, capsys, LOOP, "--fake-input", "nowhere.load=1", "--")["error"]
    assert "no such function" in error and "nowhere.load" in error


@pytest.mark.slow
def test_other_processes_write_nothing_and_reach_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tb_memplugin.fit.script.sandbox import confine

    place = tmp_path / "written"
    text = f"""
import subprocess, socket
command = ["/bin/bash", "-c", "touch {place}; exec 3<>/dev/tcp/127.0.0.1/9"]
try: found = subprocess.run(command, capture_output=True, text=True)
except PermissionError: pass  # where the kernel cannot confine them, there are none
else: assert "Permission denied" in found.stderr and "unreachable" in found.stderr, found.stderr
"""
    found = run(tmp_path, capsys, text + LOOP)
    assert found["error"] is None and not place.exists() and callable(confine)
    assert any("other processes: /bin/bash" in each for each in found["caveats"])


@pytest.mark.slow
def test_checkpoints_are_not_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("orbax.checkpoint")
    text = f"""
import orbax.checkpoint as ocp
params = jax.jit(init)()
manager = ocp.CheckpointManager({str(tmp_path / "saved")!r})
for step in range(3):
    manager.save(step, args=ocp.args.StandardSave(params))
    params, loss = jax.jit(train_step)(params, jnp.ones((8, WIDTH)))
"""
    found = run(tmp_path, capsys, text)
    assert found["error"] is None and not (tmp_path / "saved").exists()
    assert any("Nothing is saved" in each and "CheckpointManager.save" in each for each in found["caveats"])
