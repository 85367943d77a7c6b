"""The two programs of JAX's guide to device memory profiling, run here, and the figures on the page."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from support.servers import DEMO

from tb_memplugin.analysis.call_graph import CallGraph, Refine, Samples, build_call_graph, diff_samples, live_samples
from tb_memplugin.catalog.listing import listing_of_path

SCRIPT = DEMO / "make_device_profiles.py"
MB = 2**20  # pprof's


@pytest.fixture(scope="session", params=["kept", "run here"])
def profiles(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a logdir with both runs: the one in the repository, or one written now."""
    if request.param == "kept":
        return DEMO
    pytest.importorskip("jax")
    logdir = tmp_path_factory.mktemp("programs")
    script = logdir / SCRIPT.name
    script.write_text(SCRIPT.read_text())
    subprocess.run([sys.executable, script], check=True, cwd=logdir)
    return logdir


def samples(path: Path) -> Samples:
    return live_samples(listing_of_path(str(path)).recordings)


def cum(found: CallGraph) -> dict[str, int]:
    nodes = found.nodes
    return {nodes.function[i]: int(nodes.cum[i]) for i in range(len(nodes.cum))}


def calls(found: CallGraph) -> dict[tuple[str, str], int]:
    name = found.nodes.function
    return {
        (name[a], name[b]): size
        for a, b, size in zip(
            found.calls.caller.tolist(), found.calls.callee.tolist(), found.calls.bytes.tolist(), strict=True
        )
    }


def test_func2_and_its_callees_hold_what_the_page_says_and_func1_half_of_it(profiles: Path) -> None:
    found = build_call_graph(samples(profiles / "device_profile" / "memory.prof"), refine=Refine(fold=True))
    # JAX's guide has a few KiB more: 76.30MB. The arrays alone are 80,000,000 bytes: 76.29MB.
    assert cum(found)["func2"] / MB == pytest.approx(76.30, abs=0.02)
    assert cum(found)["func1"] / MB == pytest.approx(38.15, abs=0.02)
    assert calls(found)["func2", "func1"] == cum(found)["func1"]
    assert found.unplaced == 0


def test_the_leak_is_blamed_on_normal_inside_anotherfunc(profiles: Path) -> None:
    run = profiles / "device_profile_leak"
    grown = build_call_graph(diff_samples(samples(run / "memory1.prof"), samples(run / "memory9.prof")))
    rows = sum(range(2, 10)) * 10_000 * 4
    assert calls(grown)["anotherfunc", "normal"] == cum(grown)["normal"] == rows
    assert cum(grown).get("afunction", 0) == 0
    assert calls(grown).get(("afunction", "normal"), 0) == 0
    assert f"{rows / grown.total:.2%}" == "43.56%"  # relative to the base: 4,000,000 bytes and the first row's 40,000


def test_the_script_knows_its_runs_and_they_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    assert spec and spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for run in script.RUNS:
        assert f"    {run} " in str(script.__doc__)
        files = list((DEMO / run).iterdir())
        assert files and all(file.suffix == ".prof" and file.stat().st_size < 10_000 for file in files)
