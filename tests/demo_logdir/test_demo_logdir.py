"""The runs in demo_logdir: small, readable, and reproducible by the scripts next to them."""

import ast
import gzip
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.servers import DEMO

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.protos import hlo_pb2, xplane_pb2
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.readers import open_file

SCRIPTS = {
    DEMO / "make_demo.py": {"train_step", "scan_remat", "oom"},
    DEMO / "make_leak_demo.py": {"leak", "leak_mended"},
}
SCRIPT = {run: script for script, runs in SCRIPTS.items() for run in runs}
RUNS = set(SCRIPT)
ACCELERATORS = DEMO / "make_accelerator_demo.py"
MENDED = DEMO / "make_mended_demo.py"
DUMP_SCRIPTS = {ACCELERATORS: {"v5e_train_step", "v5e_out_of_memory", "h100_train_step"}, MENDED: {"v5e_mended"}}
DUMPS = {run for runs in DUMP_SCRIPTS.values() for run in runs}
DUMPED = (
    "after_optimizations.hlo.pb.gz", "after_optimizations-memory-usage-report.txt.gz", "target_arguments.txt",
    "gpu_target_config.pbtxt", "topology.pb", "compile.oom.txt",
)  # fmt: skip
DEVICE_PROFILES = {
    DEMO / "make_device_profiles.py",
    DEMO / "device_profile" / "memory.prof",
    *(DEMO / "device_profile_leak" / f"memory{i}.prof" for i in range(1, 10)),
}


def profile(run: str) -> Path:
    return DEMO / run / "plugins" / "profile" / "cpu" / "localhost.xplane.pb"


@cache
def planes(run: str) -> dict[bytes, xplane_pb2.XPlane]:
    return {plane.name: plane for plane in xplane_pb2.XSpace.FromString(profile(run).read_bytes()).planes}


@cache
def modules(run: str) -> dict[str, hlo_pb2.HloProto]:
    protos = (
        hlo_pb2.HloProto.FromString(stat.bytes_value)
        for event in planes(run)[b"/host:metadata"].event_metadata.values()
        for stat in event.stats
        if stat.WhichOneof("value") == "bytes_value"
    )
    return {proto.hlo_module.name.decode(): proto for proto in protos}


def instructions(proto: hlo_pb2.HloProto) -> Iterator[hlo_pb2.HloInstructionProto]:
    return (i for computation in proto.hlo_module.computations for i in computation.instructions)


def test_a_logdir_holds_the_scripts_and_profiles_and_nothing_derived() -> None:
    files = {path for path in DEMO.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    dumped = {path for path in files if path.relative_to(DEMO).parts[0] in DUMPS and path.name.endswith(DUMPED)}
    assert files == {*SCRIPTS, *DUMP_SCRIPTS, *map(profile, RUNS), *DEVICE_PROFILES, *dumped}


@pytest.mark.parametrize("path", [*SCRIPTS, *DUMP_SCRIPTS], ids=lambda path: path.stem)
def test_a_script_knows_how_to_make_its_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    monkeypatch.syspath_prepend(DEMO)  # as in a normal run
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    runs = {**SCRIPTS, **DUMP_SCRIPTS}[path]
    assert set(script.RUNS) == runs
    assert all(f"    {run} " in str(script.__doc__) for run in runs)


@pytest.mark.parametrize("run", sorted(RUNS))
def test_a_run_is_small_because_python_was_not_traced(run: str) -> None:
    assert profile(run).stat().st_size < 1_000_000
    host = planes(run)[b"/host:CPU"]
    assert not [event.name for event in host.event_metadata.values() if event.name.startswith(b"$")]


@cache
def dumped(run: str) -> hlo_pb2.HloProto:
    (path,) = (DEMO / run).glob("*after_optimizations.hlo.pb.gz")
    return hlo_pb2.HloProto.FromString(gzip.decompress(path.read_bytes()))


@pytest.mark.parametrize("run", sorted(RUNS | DUMPS))
def test_the_recorded_source_lines_are_those_of_the_script_as_it_is_now(run: str) -> None:
    scripts = [SCRIPT[run]] if run in SCRIPT else [ACCELERATORS, *([MENDED] if run in DUMP_SCRIPTS[MENDED] else [])]
    lines = {
        (f"demo_logdir/{script.name}".encode(), node.name.encode()): range(node.lineno, (node.end_lineno or 0) + 1)
        for script in scripts
        for node in ast.walk(ast.parse(script.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    functions = {function for _, function in lines}
    checked = 0
    for proto in [dumped(run)] if run in DUMPS else modules(run).values():
        index = proto.hlo_module.stack_frame_index
        for location in index.file_locations:
            function = index.function_names[location.function_name_id - 1].split(b".")[-1]
            if function in functions:
                assert location.line in lines[index.file_names[location.file_name_id - 1], function]
                checked += 1
    assert checked


def test_the_training_step_names_its_layers_and_parameters_and_donates_its_state() -> None:
    assert modules("train_step").keys() == {"jit_train_step", "jit_loss"}
    step = modules("train_step")["jit_train_step"]
    names = {instruction.metadata.op_name for instruction in instructions(step)}
    assert b"params['layer_3']['mlp']['up']" in names
    assert b"opt_state['mu']['layer_3']['mlp']['up']" in names
    assert any(b"transpose(jvp(layer_3))" in name for name in names)
    donated = [
        allocation
        for allocation in step.buffer_assignment.buffer_allocations
        if allocation.is_entry_computation_parameter and allocation.maybe_live_out
    ]
    assert sum(allocation.size for allocation in donated) > 160 << 20


def test_the_scanned_layers_are_while_loops() -> None:
    step = modules("scan_remat")["jit_train_step"]
    assert sum(instruction.opcode == b"while" for instruction in instructions(step)) >= 2


def test_the_step_that_failed_says_what_it_would_have_needed() -> None:
    (module,) = modules("oom").values()
    array = 2 * 327680**2
    assert module.hlo_module.name == b"jit_oom"
    assert sum(allocation.size for allocation in module.buffer_assignment.buffer_allocations) >= 2 * array


def in_use_at_step_ends(run: str) -> list[int]:
    (part,) = (p for p in open_file(profile(run).read_bytes(), str(profile(run))) if p.kind == "allocator")
    (recording,) = (found for found in part.read())
    assert recording.reported is not None and recording.clock is not None and recording.spans is not None
    assert not recording.caveats
    ends = np.sort(recording.spans.end_ns[recording.spans.kind == int(SpanKind.STEP)])
    in_use: list[int] = recording.reported.in_use[np.searchsorted(recording.clock, ends) - 1].tolist()
    return in_use


def test_the_leak_keeps_the_activations_of_every_step_and_the_mended_loop_nothing() -> None:
    leaking, mended = in_use_at_step_ends("leak"), in_use_at_step_ends("leak_mended")
    activations = 256 * 2048 * 4
    assert len(leaking) == len(mended) == 24
    assert set(np.diff(leaking)) == {activations}
    assert set(np.diff(mended)) == {0}
    assert leaking[0] == mended[0]


def test_the_line_that_leaks_is_the_call_of_the_training_step() -> None:
    (part,) = (p for p in open_file(profile("leak").read_bytes(), "leak.xplane.pb") if p.kind == "allocator")
    (recording,) = part.read()
    rows = recording.allocations
    held = np.flatnonzero((rows.end == recording.length) & (rows.size == 256 * 2048 * 4))
    (name,) = {rows.name[i] for i in held.tolist()}
    script = SCRIPT["leak"].read_text().splitlines()
    assert len(held) == 24
    assert name.startswith("make_leak_demo.py:") and "= train_step(" in script[int(name.split(":")[1]) - 1]


def reserved_and_capacity(run: str) -> tuple[int, int]:
    listing = listing_of_path(str(DEMO / run))
    assert not listing.problems
    found = summary(next(found for found in listing.recordings if found.memory == "HBM" and found.program))
    reserved, capacity = found["reserved_bytes"], found["capacity_bytes"]
    assert reserved is not None and capacity is not None
    return reserved, capacity


@pytest.mark.parametrize("run", sorted(DUMPS))
def test_a_dump_is_small_and_contains_no_path_of_the_machine_that_compiled_it(run: str) -> None:
    files = [path for path in (DEMO / run).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 300_000
    proto = dumped(run).SerializeToString()
    assert not [path for path in (b"/work/", b"/root/", b"/tmp/", b"/home/") if path in proto]


@pytest.mark.parametrize(("run", "capacity"), [("v5e_train_step", 15.75), ("h100_train_step", 79.14)])
def test_a_step_that_compiles_fits_the_accelerator_that_its_dump_names(run: str, capacity: float) -> None:
    reserved, limit = reserved_and_capacity(run)
    assert limit == pytest.approx(capacity * 2**30, rel=0.01)
    assert reserved < limit


def test_the_step_that_was_refused_is_larger_than_the_chip_and_has_the_compilers_error() -> None:
    reserved, limit = reserved_and_capacity("v5e_out_of_memory")
    assert reserved > limit
    error = (DEMO / "v5e_out_of_memory" / "compile.oom.txt").read_text()
    assert "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom" in error and "jit_train_step" in error


def test_the_mended_step_of_the_same_batch_fits() -> None:
    reserved, limit = reserved_and_capacity("v5e_mended")
    assert reserved < limit == reserved_and_capacity("v5e_out_of_memory")[1]
