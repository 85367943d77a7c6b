"""The command line: standard output, standard error and exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import run_for_text as run
from support.servers import BIN, DATA, DEMO

from tb_memplugin import __version__
from tb_memplugin.sizes import bytes_text

PROFILE = DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb"


@pytest.mark.parametrize(("arguments", "code"), [(("summary", str(DEMO)), 0), (("summary", "/missing"), 2)])
def test_the_installed_command_does_what_main_does(arguments: tuple[str, ...], code: int) -> None:
    done = subprocess.run([BIN / "tb-memplugin", *arguments], capture_output=True, text=True, timeout=600)
    expected = run(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (code, expected.stdout, expected.stderr)


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "tb_memplugin", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, f"tb-memplugin {__version__}\n")


def test_summary_for_people() -> None:
    done = run("summary", str(DEMO))
    assert (done.returncode, done.stderr) == (0, "")
    heading, first, *_ = done.stdout.splitlines()
    assert heading.split()[:3] == ["peak", "reserved", "reported"]
    assert "jit_oom(0)" in first  # the largest


def test_summary_for_programs() -> None:
    done = run("summary", str(DEMO), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert set(answer) == {"schema_version", "recordings", "problems", "next"}
    assert answer["schema_version"] == 3
    assert len({recording["id"] for recording in answer["recordings"]}) == len(answer["recordings"])


def test_explain_for_people() -> None:
    done = run("explain", str(PROFILE))
    assert (done.returncode, done.stderr) == (0, "")
    headline, _, moment, *rest = done.stdout.splitlines()
    assert headline.startswith("Peak ")
    assert " live at the peak, #" in moment
    assert any(line.split() == ["bytes", "share", "role"] for line in rest)
    assert any("make_demo.py:" in line for line in rest)


def test_an_error_goes_on_with_what_makes_its_program_fit() -> None:
    logdir = DEMO / "v5e_out_of_memory"
    printed = run("explain", str(logdir), "--recording", "v5e_out_of_memory|compile|").stdout
    assert "The logdir contains jit_train_step, with its buffers" in printed
    assert "Fits with: Use four microbatches of 64" in printed


def test_explain_for_programs() -> None:
    [first, *_] = json.loads(run("summary", str(DEMO), "--json").stdout)["recordings"]
    for chosen in ((), ("--recording", first["id"]), ("--recording", first["title"])):
        done = run("explain", str(DEMO), "--json", *chosen)
        assert (done.returncode, done.stderr) == (0, "")
        answer = json.loads(done.stdout)
        assert answer["recording"] == first
        assert answer["at"]["bytes"] == first["peak_bytes"]
    at_start = json.loads(run("explain", str(DEMO), "--json", "--at", "#0").stdout)
    assert at_start["at"]["position"] == 0
    size, whole = bytes_text(at_start["at"]["bytes"]), bytes_text(first["peak_bytes"])
    assert at_start["headline"].startswith(f"At #0 \N{MIDDLE DOT} {size} live")
    assert at_start["headline"].endswith(f"the peak is {whole}")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--at", "1s"), "no clock"),
        (("--at", "#99999999"), "#99999999"),
        (("--recording", "x\x1b"), r"x\x1b"),
        (("--recording", ""), "recordings match"),
    ],
)
def test_explain_of_what_is_not_there(arguments: tuple[str, str], expected: str) -> None:
    done = run("explain", str(DEMO), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert expected in line


@pytest.mark.parametrize(
    "profile",
    [
        "xprof_demo_gpu_multi_worker",
        "tracelens_mi300_conv_minimal_08",
        "tracelens_te_fused_attn",
        "xprof_tpu_inference_2_old",
    ],
)
def test_explain_an_allocator_of_a_real_profile(profile: str) -> None:
    path = DATA / "xplane" / profile
    if not path.exists():
        pytest.skip("no test data here")
    recordings = json.loads(run("summary", str(path), "--json").stdout)["recordings"]
    chosen = next(each for each in recordings if each["kind"] == "allocator")
    done = run("explain", str(path), "--recording", chosen["id"], "--json", "--top", "all")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    parts = [*answer["groups"], answer["before"], answer["unexplained"]]
    assert sum(part["bytes"] for part in parts) == answer["at"]["bytes"] == chosen["peak_bytes"]
    assert "leak" not in [each["verdict"] for each in answer["leaks"]["findings"]]
    assert "Leaks" in run("explain", str(path), "--recording", chosen["id"]).stdout


def test_damage_goes_to_standard_error_and_the_rest_is_printed(tmp_path: Path) -> None:
    folder = tmp_path / "plugins/profile/run"
    folder.mkdir(parents=True)
    shutil.copy(PROFILE, folder / "good.xplane.pb")
    (folder / "bad.xplane.pb").write_bytes(b"\xff" * 100)
    done = run("summary", str(tmp_path), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["recordings"]
    [line] = done.stderr.splitlines()
    assert "bad.xplane.pb" in line


@pytest.mark.parametrize("name", ["missing.xplane.pb", "empty.xplane.pb", "text.xplane.pb", "notes.txt", "folder"])
def test_wrong_input_is_one_line_and_exit_code_2(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif not name.startswith("missing"):
        path.write_bytes(b"" if name.startswith("empty") else b"hello world\n" * 100)
    done = run("summary", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("tb-memplugin: ")
    assert str(path) in line


def test_the_damaged_profile_of_the_test_data() -> None:
    path = DATA / "xplane" / "xprof_tpu_inference_2"
    if not path.exists():
        pytest.skip("no test data here")
    done = run("summary", str(path))
    assert done.returncode == 2
    assert "host.xplane.pb" in done.stderr


@pytest.mark.parametrize(
    "arguments", [(), ("nothing",), ("summary",), ("summary", "a", "b"), ("explain",), ("hook", "dance")]
)
def test_wrong_calls(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("tb-memplugin")
    assert "--help" in line


def test_a_reader_that_has_seen_enough() -> None:
    command = f"'{BIN / 'tb-memplugin'}' summary '{DEMO}' --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "plugins/profile/\x1b[31mred"
    folder.mkdir(parents=True)
    shutil.copy(PROFILE, folder / "h\n.xplane.pb")
    (folder / "b\x07.xplane.pb").write_bytes(b"")
    done = run("summary", str(tmp_path))
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert "\x07" not in done.stderr
    assert r"\x1b[31mred" in done.stdout


def test_summary_folds_programs_of_equal_hosts(tmp_path: Path) -> None:
    session = tmp_path / "plugins" / "profile" / "2026_01_01"
    session.mkdir(parents=True)
    for host in ("h1", "h2", "h3"):
        (session / f"{host}.xplane.pb").write_bytes(PROFILE.read_bytes())
    lines = run("summary", str(tmp_path)).stdout.splitlines()
    assert sum("jit_train_step" in line for line in lines) == 1
    assert any("jit_train_step" in line and "x3 hosts" in line for line in lines)
    assert len(json.loads(run("summary", str(tmp_path), "--json", "--top", "all").stdout)["recordings"]) % 3 == 0


def test_summary_imports_no_host_and_no_framework() -> None:
    """Check the imports: the page's servers, XProf, TensorBoard and JAX take seconds to import."""
    code = (
        "import sys; from tb_memplugin.cli import main; "
        f"main(['summary', {str(DEMO)!r}, '--json']); "
        "print([name for name in ('jax', 'tensorboard', 'xprof', 'werkzeug', 'fsspec') if name in sys.modules], "
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stderr.strip() == "[]"


def test_summary_says_why_nothing_is_known_over_time() -> None:
    printed = run("summary", str(DEMO / "train_step")).stdout
    assert printed.count("No memory over time (cpu_backend)") == 1
    assert "track()" in printed
    assert "No memory over time" not in run("summary", str(DEMO / "leak")).stdout


@pytest.mark.skipif(not DATA.exists(), reason="needs the real profiles beside the repository")
def test_explain_says_what_executions_allocated_and_for_which_programs() -> None:
    profile = str(DATA / "xplane" / "tracelens_mi300_conv_minimal_08")
    printed = run("explain", profile, "--recording", "GPU_0_bfc").stdout
    assert "By compiled programs: 10 allocations" in printed and "all match a known program" in printed
    assert "jit_forward_3d_conv(15), running at this moment" in printed


def test_explain_of_a_program_leads_to_what_was_recorded_over_time() -> None:
    printed = run("explain", str(DEMO / "leak_mended")).stdout
    hint = printed.splitlines()[-1]
    assert "This run also has memory over time" in hint
    of_time = hint.partition("--recording ")[2].strip("'")
    assert "Leaks, over" in run("explain", str(DEMO / "leak_mended"), "--recording", of_time).stdout
    assert "Memory over time" not in run("explain", str(DEMO / "train_step")).stdout
