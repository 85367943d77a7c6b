"""The runs kept in demo_logdir: small, readable, and made by the script that lies beside them."""

import ast
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tb_memplugin.protos import hlo_pb2, xplane_pb2

LOGDIR = Path(__file__).parent.parent / "demo_logdir"
SCRIPT = LOGDIR / "make_demo.py"
RUNS = {"train_step", "scan_remat", "oom"}


def profile(run: str) -> Path:
    return LOGDIR / run / "plugins" / "profile" / "cpu" / "localhost.xplane.pb"


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


def test_a_logdir_holds_the_script_and_profiles_and_nothing_derived() -> None:
    files = {path for path in LOGDIR.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert files == {SCRIPT, *map(profile, RUNS)}


def test_the_script_knows_how_to_make_each_run() -> None:
    pytest.importorskip("jax")
    spec = importlib.util.spec_from_file_location("make_demo", SCRIPT)
    assert spec and spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert set(script.RUNS) == RUNS
    assert all(f"    {run} " in str(script.__doc__) for run in RUNS)


@pytest.mark.parametrize("run", sorted(RUNS))
def test_a_run_is_small_because_python_was_not_traced(run: str) -> None:
    assert profile(run).stat().st_size < 1_000_000
    host = planes(run)[b"/host:CPU"]
    assert not [event.name for event in host.event_metadata.values() if event.name.startswith(b"$")]


@pytest.mark.parametrize("run", sorted(RUNS))
def test_the_recorded_source_lines_are_those_of_the_script_as_it_is_now(run: str) -> None:
    lines = {
        node.name.encode(): range(node.lineno, (node.end_lineno or 0) + 1)
        for node in ast.walk(ast.parse(SCRIPT.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    checked = 0
    for proto in modules(run).values():
        index = proto.hlo_module.stack_frame_index
        for location in index.file_locations:
            function = index.function_names[location.function_name_id - 1].split(b".")[-1]
            if function in lines:
                assert index.file_names[location.file_name_id - 1] == b"demo_logdir/make_demo.py"
                assert location.line in lines[function]
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
