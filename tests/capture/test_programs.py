"""Memory reports of compiled programs before they run, against their profiles afterwards, here and in XProf."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.steps import STEPS

from tb_memplugin import capture
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.protos.xplane_pb2 import XSpace

PROGRAM = "momentum_donated"


@cache
def program(name: str = PROGRAM) -> Any:
    step = STEPS[name]
    return jax.jit(step.function, donate_argnums=step.donated).lower(*step.arguments).compile()


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(capture.compiled(program(), tmp_path_factory.mktemp("before")))


def profile(name: str, logdir: Path) -> Path:
    """Return the profile of the same program after one run."""
    arguments = jax.tree.map(lambda shape: jnp.ones(shape.shape, shape.dtype), STEPS[name].arguments)
    with jax.profiler.trace(str(logdir)):
        for result in jax.tree.leaves(program(name)(*arguments)):
            result.block_until_ready()
    (path,) = logdir.rglob("*.xplane.pb")
    return path


def only(path: Path) -> Recording:
    """Return the report of one program."""
    (found,) = listing_of_path(str(path)).recordings
    return found


def same(ours: Recording, path: Path) -> Recording:
    """Return the program with this key from a profile, which may contain other programs of this process."""
    (found,) = (recording for recording in listing_of_path(str(path)).recordings if recording.title == ours.title)
    return found


def columns(recording: Recording) -> Iterator[tuple[str, list[Any]]]:
    rows = recording.allocations
    for name in rows.__slots__:
        column = getattr(rows, name)
        yield name, [column[i] for i in range(len(rows))] if isinstance(column, Text) else column.tolist()


def test_it_lies_where_profiles_lie(before: Path) -> None:
    assert before.parts[-4:-2] == ("plugins", "profile")
    assert before.name.endswith(".xplane.pb")


def test_two_within_a_second_are_two_runs(tmp_path: Path) -> None:
    paths = [Path(capture.compiled(program(), tmp_path)) for _ in range(3)]
    assert len({path.parent for path in paths}) == 3
    assert len(listing_of_path(str(tmp_path)).recordings) == 3


@pytest.mark.parametrize("name", ["momentum_donated", "adam", "scanned", "accumulated", "mixed", "decode", "forward"])
def test_it_agrees_with_the_profile(name: str, tmp_path: Path) -> None:
    """Allow for loop carries: on CPU the profile has the compiler's traces, JAX has none, and lifetimes are rebuilt."""
    ours = only(Path(capture.compiled(program(name), tmp_path / "before")))
    theirs = same(ours, profile(name, tmp_path / "after"))
    told, known = dict(columns(ours)), dict(columns(theirs))
    rebuilt = {"last_used"} | ({"charge", "end"} if name in ("scanned", "accumulated") else set())
    assert {column for column, cells in told.items() if cells != known[column]} <= rebuilt
    assert (peak(ours), reserved_bytes(ours)) == (peak(theirs), reserved_bytes(theirs))
    assert np.array_equal(ours.regions.size, theirs.regions.size)
    assert np.array_equal(roles(ours), roles(theirs))


def test_it_is_one_message_of_the_format(before: Path) -> None:
    """Parse with protobuf's own parser, and check that no unknown field remains."""
    space = XSpace.FromString(before.read_bytes())
    (plane,) = space.planes
    (event,) = plane.event_metadata.values()
    names = {stat.name for stat in plane.stat_metadata.values()}
    assert (plane.name, names) == (b"/host:metadata", {b"Hlo Proto", b"program_id"})
    assert [plane.stat_metadata[stat.metadata_id].name for stat in event.stats] == [b"Hlo Proto", b"program_id"]
    assert event.name == b"jit_step(%d)" % event.stats[1].uint64_value
    assert space.SerializeToString(deterministic=True) and len(space.SerializeToString()) == before.stat().st_size


def test_xprof_says_of_it_what_it_says_of_the_profile(tmp_path: Path) -> None:
    """Compare every field for a program without temporaries; without traces, XProf shows no temporaries."""
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data")

    before, after = (
        Path(capture.compiled(program("product"), tmp_path / "before")),
        profile("product", tmp_path / "after"),
    )
    title = only(before).title

    def answer(path: Path) -> dict[str, Any]:
        assert "memory_viewer" in convert.xspace_to_tool_names([str(path)])
        options = {"module_name": title, "memory_space": "0"}
        told, _ = convert.xspace_to_tool_data([str(path)], "memory_viewer", options)
        found: dict[str, Any] = json.loads(told)
        # Persistent buffers have no defined order; they are numbered as they are listed.
        buffers = [{**buffer, "numbered": 0} for buffer in found["maxHeapBySize"]]
        numbers = {key: value for key, value in found.items() if isinstance(value, (float, int, str))}
        return {**numbers, "buffers": sorted(buffers, key=lambda buffer: str(buffer["label"]))}

    ours = answer(before)
    shapes = {buffer["shapeString"].split("{")[0] for buffer in ours["buffers"]}
    assert shapes == {"f32[128,96]", "f32[96,160]", "f32[128,160]"}
    assert ours["totalBufferAllocationMib"] * 2**20 == 4 * (128 * 160 + 128 * 96 + 96 * 160)
    assert ours == answer(after)


def test_shapes_are_enough_and_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Use 16 TiB of input and output: any attempt to run the program would fail."""
    huge = jax.ShapeDtypeStruct((2**21, 2**21), jnp.float32)
    compiled = jax.jit(lambda x: x + 1).lower(huge).compile()
    (recording,) = listing_of_path(str(capture.compiled(compiled, tmp_path))).recordings
    assert reserved_bytes(recording) == 2 * 2**44
    assert "32.0 TiB" in capture.report(compiled)
    assert "32.0 TiB" in capsys.readouterr().out


def test_the_report_is_printed_and_returned(capsys: pytest.CaptureFixture[str]) -> None:
    text = capture.report(program())
    assert capsys.readouterr().out == text + "\n"
    assert text.startswith("Peak ")
    assert "activation" in text and "p['layer_0']['up']" in text


def test_what_fits_passes_and_what_does_not_explains(before: Path) -> None:
    needed = reserved_bytes(only(before))
    capture.assert_fits(program(), needed)
    capture.assert_fits(program(), "1GiB")
    with pytest.raises(AssertionError) as failure:
        capture.assert_fits(program(), needed - 1)
    assert "1 B more than" in str(failure.value).splitlines()[0]
    assert capture.report(program()) in str(failure.value)


@pytest.mark.parametrize("limit", ["70G", "much", "-1GiB"])
def test_a_limit_is_never_guessed(limit: str) -> None:
    with pytest.raises(ValueError, match="size"):
        capture.assert_fits(program(), limit)


def test_a_backend_that_tells_nothing_is_said_so(tmp_path: Path) -> None:
    class Silent:
        def runtime_executable(self) -> None:
            return None

        def memory_analysis(self) -> None:
            return None

    silent: Any = Silent()
    with pytest.raises(ValueError, match="provides no buffer assignment of the program"):
        capture.compiled(silent, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_training_script_loads_nothing_that_only_explains() -> None:
    code = "import sys, tb_memplugin.capture; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    rooms = {name.split(".")[1] for name in loaded if name.startswith("tb_memplugin.")}
    assert rooms == {"capture", "errors", "formats", "model", "readers", "sizes"}
