"""Notebooks that a kernel runs: what functions of capture, `fit.largest` and the magics show."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from support.servers import DEMO, REPOSITORY, fetch

from tb_memplugin import notebook
from tb_memplugin.errors import InputError

EXAMPLES = REPOSITORY / "examples"
TIMEOUT_SECONDS = 300  # of a cell, where the machine is busy
STEP = """
import jax, jax.numpy as jnp
from tb_memplugin import capture
lowered = jax.jit(lambda w, x: jnp.tanh(x @ w) @ w.T).lower(jnp.ones((512, 512)), jnp.ones((64, 512)))
"""
LOAD = "%load_ext tb_memplugin"


def run(cells: Sequence[str], folder: Path) -> list[list[dict[str, Any]]]:
    """Run cells in a kernel, in a folder. Return the outputs of each."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    return execute(notebook, folder)


def execute(notebook: Any, folder: Path) -> list[list[dict[str, Any]]]:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(REPOSITORY)}
    client = nbclient.NotebookClient(
        notebook, timeout=TIMEOUT_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=environment)
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def html(outputs: Sequence[dict[str, Any]]) -> list[str]:
    return [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    cells = [
        STEP,
        "capture.report(lowered.compile())",
        "text = capture.report(lowered.compile()); text.splitlines()[0]",
        "capture.compile(lowered)",
        LOAD,
        "%%memory\nw = jnp.ones((300, 512))\nkept = jax.jit(lambda w: w * 2 + 1)(w)\nfreed = w - 1; del freed",
        "%%memory\n1 + 1",
        f"%memory {DEMO} 500",
        "%memory",
        "%memory one two",
    ]
    return run(cells, tmp_path_factory.mktemp("notebook"))


def test_a_report_is_shown_once(shown: list[list[dict[str, Any]]]) -> None:
    (only,) = shown[1]
    assert only["data"]["text/plain"].startswith("Peak ")
    assert "<polygon" in html([only])[0]


def test_a_report_is_shown_where_it_is_not_the_last_value(shown: list[list[dict[str, Any]]]) -> None:
    first, value = shown[2]
    assert "<polygon" in html([first])[0]
    assert "Peak" in value["data"]["text/plain"]


def test_a_compiled_program_shows_itself(shown: list[list[dict[str, Any]]]) -> None:
    assert "jit__lambda" in html(shown[3])[0]


def test_a_cell_shows_what_it_compiled_and_what_stays_live(shown: list[list[dict[str, Any]]]) -> None:
    (text,) = html(shown[5])
    assert "compiled; the largest" in text
    assert "1.17 MiB in 2 new arrays stay live" in text  # 300 * 512 * 4 bytes each
    assert "w = jnp.ones((300, 512))" in text and "freed" not in text


def test_a_cell_that_compiles_nothing_says_so(shown: list[list[dict[str, Any]]]) -> None:
    value, memory = shown[6]
    assert value["data"]["text/plain"] == "2"
    assert "Nothing was compiled." in html([memory])[0] and "No new array stays live." in html([memory])[0]


def test_wrong_calls_are_one_line(shown: list[list[dict[str, Any]]]) -> None:
    for (only,) in shown[8:10]:
        assert only["name"] == "stderr" and only["text"].startswith("Not a call of %memory: ")


def test_a_server_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(InputError, match="could not be served: here: exit code 1"):
        notebook.server_port("here")


def test_the_page_is_in_a_frame_and_its_server_ends_with_the_kernel(shown: list[list[dict[str, Any]]]) -> None:
    (frame,) = html(shown[7])
    found = re.search(r"http://localhost:(\d+)/", frame)
    assert found and 'height="500"' in frame
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            fetch(found[0].replace("localhost", "127.0.0.1"))
        except OSError:
            return
        time.sleep(0.1)
    pytest.fail("the server outlived the kernel")


def test_the_largest_batch_is_a_table(tmp_path: Path) -> None:
    step = (
        "def step(devices, batch=8):\n    import jax, jax.numpy as jnp\n"
        "    return jax.jit(lambda x: x @ x.T), (jax.ShapeDtypeStruct((batch, 64), jnp.float32),)"
    )
    cells = [
        step,
        "from tb_memplugin import fit\nfit.largest(step, on='cpu:1', vary={'batch': [8, 16]}, budget='1MiB')",
    ]
    (text,) = html(run(cells, tmp_path)[1])
    assert "<th>batch</th>" in text and text.count("<td>yes</td>") == 2


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_an_example_gives_the_kinds_of_output_that_are_stored(path: Path, tmp_path: Path) -> None:
    stored = nbformat.reads(path.read_text(), as_version=4)
    before = [sorted(output.get("data", {})) for cell in stored.cells for output in cell.get("outputs", ())]
    after = [sorted(output.get("data", {})) for outputs in execute(stored, tmp_path) for output in outputs]
    assert after == before and any("text/html" in kinds for kinds in before)
    assert str(REPOSITORY) not in json.dumps(stored)
