"""Roles in programs whose correct roles are written here, with JAX's names and without."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from support.hand_built import MIB, Handmade, read
from support.profiles import Compiled, compiled_programs
from support.recordings import Row
from support.recordings import recording as of_rows
from support.servers import TESTS
from support.steps import BATCH, HIDDEN, LAYERS, STEPS, WIDTH, compiled, recording, without_names

from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, training_step
from tb_memplugin.analysis.ownership.roles import roles, value_roles
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.readers.hlo import read_hlo

PARAM, OPT, INPUT, STATE, UNKNOWN = Role.PARAMETER, Role.OPTIMIZER_STATE, Role.INPUT, Role.STATE, Role.UNKNOWN
LEAVES = 3 * LAYERS  # arguments of one tree of an MLP's weights

# Roles per argument, in order. Trees have sorted keys: bias, down, up of each layer; k, o, q, v of each.
ARGUMENTS: dict[str, list[Role]] = {
    **{
        name: [PARAM] * LEAVES + [OPT] * LEAVES + [INPUT, INPUT]
        for name in (
            "momentum", "momentum_donated", "momentum_remat", "momentum_untold",
            "clipped", "accumulated", "mixed", "many_steps", "where_finite",
        )
    },
    # No weight's update reads the averages of weights, so they are not the optimizer's.
    "averaged": [PARAM] * LEAVES + [STATE] * LEAVES + [INPUT, INPUT],
    "adam": [PARAM] * LEAVES + [OPT] * 2 * LEAVES + [OPT, INPUT, INPUT],
    "adam_donated": [PARAM] * LEAVES + [OPT] * 2 * LEAVES + [OPT, INPUT, INPUT],
    "scanned": [PARAM] * 3 + [OPT] * 3 + [INPUT, INPUT],
    "scanned_remat": [PARAM] * 3 + [OPT] * 3 + [INPUT, INPUT],
    "gradients": [PARAM] * LEAVES + [INPUT, INPUT],
    "low_rank": [PARAM, PARAM] + [PARAM] * 2 + [OPT] * 2 + [INPUT, INPUT],
    "normalized": [PARAM, PARAM, STATE, INPUT, INPUT],
    # x is first multiplied with three weights; without names, x could be the weight and these the data: see NAMED.
    "decode": [UNKNOWN, PARAM, UNKNOWN, UNKNOWN] + [PARAM] * 4 * (LAYERS - 1) + [STATE] * 2 * LAYERS + [UNKNOWN, INPUT],
    "forward": [PARAM] * (1 + LEAVES) + [INPUT],
    "product": [UNKNOWN, UNKNOWN],
    "residual": [UNKNOWN, UNKNOWN],
}  # fmt: skip

# Roles that only names reveal: the first layer's leaves have the roles of the other layers' leaves.
NAMED: dict[str, list[Role]] = {"decode": [PARAM] * 4 * LAYERS + [STATE] * 2 * LAYERS + [INPUT, INPUT]}

both = pytest.mark.parametrize("named", [True, False], ids=["named", "nameless"])


def of_arguments(of: Recording) -> list[Role]:
    """Return the roles by argument number, from the rows of complete arguments before the program."""
    assert of.program is not None and of.program.values is not None and of.program.value is not None
    values = of.program.values()
    number = np.where(of.program.value >= 0, values.argument[of.program.value], -1)
    found = {int(number[row]): Role(roles(of)[row]) for row in np.flatnonzero(number >= 0).tolist()}
    return [found[n] for n in range(len(found))]


def temporaries(of: Recording) -> Iterator[tuple[str, str, Role]]:
    """Return (name, shape without its layout, role) of each buffer in temporary memory."""
    rows = of.allocations
    for row in np.flatnonzero(of.regions.kind[rows.region] == RegionKind.TEMPORARY).tolist():
        yield rows.name[row], rows.shape[row].split("{")[0], Role(roles(of)[row])


@both
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str, named: bool) -> None:
    expected = NAMED.get(name, ARGUMENTS[name]) if named else ARGUMENTS[name]
    assert of_arguments(recording(name, named=named)) == expected


@pytest.mark.parametrize("name", STEPS)
def test_every_program_here_has_a_truth(name: str) -> None:
    assert name in ARGUMENTS


@pytest.mark.parametrize("name", ["momentum_donated", "momentum_untold", "clipped", "adam_donated", "mixed"])
def test_passes_are_those_that_jax_names(name: str) -> None:
    """Compare the roles from dataflow alone with the roles of the same program with names."""
    found = training_step(recording(name, named=False))
    of = recording(name)
    assert found is not None and of.program is not None
    phase = found.phase[-of.length :]
    told = {TrainingPhase.FORWARD: 0, TrainingPhase.BACKWARD: 0}
    for position in range(of.length):
        scope = of.program.op_name[position]
        # A fusion has the name of its last operation, so a fusion of several operations has no single correct role.
        if "jvp(" not in scope or ";" in scope:
            continue
        truth = TrainingPhase.BACKWARD if "transpose(" in scope else TrainingPhase.FORWARD
        told[truth] += 1
        if _is_worked_out_early(of, position) or of.program.op[position] == "bitcast":
            continue
        assert phase[position] == truth, (of.program.name[position], scope)
    assert min(told.values()) >= 5


def _is_worked_out_early(of: Recording, position: int) -> bool:
    """Return whether dataflow may place this operation of the loss's derivative in either pass."""
    assert of.program is not None
    scope = of.program.op_name[position]
    return "integer_pow" in scope or scope.endswith(("jvp()/sub", "jvp()/div", "reduce_sum", "transpose(jvp())/mul"))


@both
@pytest.mark.parametrize("name", ["momentum_donated", "momentum_untold", "clipped", "adam_donated"])
def test_what_the_backward_pass_reads_is_an_activation(name: str, named: bool) -> None:
    """Return the tanh and the result of each layer, at any address."""
    of = recording(name, named=named)
    rows = np.flatnonzero((value_roles(of) == Role.ACTIVATION) & (of.allocations.size > 4)).tolist()
    shapes = [of.allocations.shape[row].split("{")[0] for row in rows]
    assert shapes.count(f"f32[{BATCH},{HIDDEN}]") == LAYERS
    assert shapes.count(f"f32[{BATCH},{WIDTH}]") == LAYERS
    assert set(shapes) == {f"f32[{BATCH},{HIDDEN}]", f"f32[{BATCH},{WIDTH}]"}


@both
def test_gradients_are_what_the_update_reads(named: bool) -> None:
    """Clip gradients by their norm, so that all of them are live until the last one is computed."""
    found = list(temporaries(recording("clipped", named=named)))
    weights = (f"f32[{WIDTH},{HIDDEN}]", f"f32[{HIDDEN},{WIDTH}]")
    gradients = [shape for _, shape, role in found if role is Role.GRADIENT and shape in weights]
    assert len(gradients) == 2 * LAYERS


@both
def test_a_scan_over_layers_stacks_activations_and_gradients(named: bool) -> None:
    found = {(shape, role) for _, shape, role in temporaries(recording("scanned", named=named)) if shape[4:6] == "8,"}
    tanh, carry = f"f32[8,{BATCH},{HIDDEN}]", f"f32[8,{BATCH},{WIDTH}]"
    assert found == {
        (tanh, Role.ACTIVATION),
        (carry, Role.ACTIVATION),
        (f"f32[8,{WIDTH},{HIDDEN}]", Role.GRADIENT),
        (f"f32[8,{HIDDEN},{WIDTH}]", Role.GRADIENT),
        (f"f32[8,{HIDDEN}]", Role.GRADIENT),
    }


@both
def test_what_is_made_again_is_no_activation(named: bool) -> None:
    """Use jax.checkpoint around each layer: only its input is kept, and its tanh is recomputed as a temporary."""
    found = [(shape, role) for _, shape, role in temporaries(recording("scanned_remat", named=named))]
    assert (f"f32[8,{BATCH},{WIDTH}]", Role.ACTIVATION) in found
    assert not [shape for shape, role in found if role is Role.ACTIVATION and shape.endswith(f"{HIDDEN}]")]
    assert (f"f32[{BATCH},{HIDDEN}]", Role.TEMPORARY) in found


@both
def test_gradients_added_up_over_microbatches_are_gradients(named: bool) -> None:
    found = {shape for _, shape, role in temporaries(recording("accumulated", named=named)) if role is Role.GRADIENT}
    assert {f"f32[{WIDTH},{HIDDEN}]", f"f32[{HIDDEN},{WIDTH}]"} <= found


@both
def test_a_parameter_in_bfloat16_is_still_the_parameter(named: bool) -> None:
    rows = list(temporaries(recording("mixed", named=named)))
    copies = {role for _, shape, role in rows if shape == f"bf16[{WIDTH},{HIDDEN}]"}
    assert copies <= {Role.PARAMETER, Role.GRADIENT}
    assert Role.ACTIVATION in {role for _, shape, role in rows if f"[{BATCH},{HIDDEN}]" in shape}


@both
def test_results_that_are_not_donated_to_are_outputs(named: bool) -> None:
    of = recording("adam", named=named)
    results = of.regions.kind[of.allocations.region] == RegionKind.OUTPUT
    assert np.count_nonzero(results) >= 3 * LEAVES
    assert set(roles(of)[results].tolist()) == {Role.OUTPUT}


@both
def test_an_updated_argument_shares_its_memory_and_its_role(named: bool) -> None:
    of = recording("adam_donated", named=named)
    held = (of.regions.kind[of.allocations.region] & RegionKind.PARAMETER) != 0
    assert {Role(role) for role in roles(of)[held].tolist()} == {PARAM, OPT, INPUT}
    for region in np.unique(of.allocations.region[held]).tolist():
        assert len(set(roles(of)[of.allocations.region == region].tolist())) == 1


SHARDED = """
import sys
sys.path.insert(0, sys.argv[2])
import jax
from jax.sharding import NamedSharding, PartitionSpec as Spec
from support.aot import hlo_proto
from support.steps import STEPS

mesh = jax.make_mesh((8,), ("data",))
step = STEPS["momentum_donated"]
def placed(tree, spec):
    sharding = NamedSharding(mesh, spec)
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)
p, m, x, y = step.arguments
arguments = placed(p, Spec()), placed(m, Spec()), placed(x, Spec("data")), placed(y, Spec("data"))
compiled = jax.jit(step.function, donate_argnums=step.donated).lower(*arguments).compile()
open(sys.argv[1], "wb").write(hlo_proto(compiled))
"""


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Compile the step for eight devices: replicated weights and a sharded batch."""
    path = tmp_path_factory.mktemp("sharded") / "module"
    flags = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    tests = str(TESTS)
    subprocess.run([sys.executable, "-c", SHARDED, str(path), tests], check=True, env=os.environ | flags)
    return path.read_bytes()


@both
def test_replicated_arguments_on_eight_devices(sharded: bytes, named: bool) -> None:
    (of,) = read_hlo(sharded if named else without_names(sharded), source="sharded")
    assert of_arguments(of) == ARGUMENTS["momentum"]
    found = {(shape, role) for _, shape, role in temporaries(of)}
    assert (f"f32[{BATCH // 8},{HIDDEN}]", Role.ACTIVATION) in found
    # One instruction sums the gradients of all layers, and the loss, over the devices.
    weights = [role for _, shape, role in temporaries(of) if shape == f"f32[{WIDTH},{HIDDEN}]"]
    assert weights.count(Role.GRADIENT) == 2 * LAYERS


def test_roles_of_other_kinds_are_their_sources() -> None:
    rows = [Row(8, 0, 4, role=Role.EXECUTABLE), Row(8, 1, 3, role=Role.ACTIVATION)]
    assert roles(of_rows(rows, 4)).tolist() == [Role.EXECUTABLE, Role.ACTIVATION]


def test_a_buffer_that_the_file_lacks_is_unknown() -> None:
    made = Handmade()
    first = made.instruction("first")
    made.instruction("last", [first])
    known, lost = made.buffer(first, MIB), made.buffer(first, MIB)
    made.allocation((known, 0), (lost, MIB), size=2 * MIB)
    made.assignment.logical_buffers.remove(lost)
    assert roles(read(made)).tolist() == [Role.TEMPORARY, Role.UNKNOWN]


@cache
def programs() -> dict[str, bytes]:
    return {name: compiled(name) for name in ("scanned", "decode", "mixed", "forward")}


@pytest.mark.parametrize("seed", range(60))
def test_damage_costs_no_more_than_the_program(seed: int) -> None:
    """Change bytes or cut off the end: expect an InputError, or a valid role for every row."""
    random = np.random.default_rng(seed)
    name = list(programs())[seed % len(programs())]
    data = bytearray(programs()[name])
    for at in random.integers(0, len(data), random.integers(1, 40)).tolist():
        data[at] = random.integers(256)
    cut = int(random.integers(len(data))) if seed % 3 == 0 else len(data)
    try:
        found = read_hlo(bytes(data[:cut]), source="damaged")
    except InputError:
        return
    for of in found:
        assert len(roles(of)) == len(of.allocations)
        assert set(roles(of).tolist()) <= set(Role)


@pytest.mark.parametrize("seed", range(40))
def test_ids_that_make_no_sense_cost_nothing(seed: int) -> None:
    """Use arbitrary operands, roots, parameters and aliases, including impossible loops."""
    random = np.random.default_rng(seed)
    name = list(programs())[seed % len(programs())]
    proto = HloProto.FromString(programs()[name])
    for computation in proto.hlo_module.computations:
        ids = [instruction.id for instruction in computation.instructions]
        for instruction in computation.instructions:
            if random.random() < 0.1 and instruction.operand_ids:
                instruction.operand_ids[int(random.integers(len(instruction.operand_ids)))] = int(random.choice(ids))
            if random.random() < 0.05:
                instruction.parameter_number = int(random.choice([-2, 3, 50, 2**63 - 1]))
            if random.random() < 0.05:
                instruction.tuple_index = int(random.integers(-2, 50))
    for entry in proto.hlo_module.input_output_alias.entries:
        entry.parameter_number = int(random.integers(-2, 50))
    for of in read_hlo(proto.SerializeToString(), source="senseless"):
        assert set(roles(of).tolist()) <= set(Role)


@pytest.mark.parametrize("program", compiled_programs(), ids=str)
def test_real_programs_know_most_of_their_bytes(program: Compiled) -> None:
    """Check training steps only, where every role is known."""
    for of in read_hlo(program.data, source=str(program.path)):
        if training_step(of) is not None:
            assert Role.UNKNOWN not in roles(of)
            assert {Role.PARAMETER, Role.ACTIVATION} <= {Role(role) for role in np.unique(roles(of)).tolist()}
