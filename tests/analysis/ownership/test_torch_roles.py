"""Roles of PyTorch tensors, on a training loop that records the role of each."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from support.caching_allocator import MIB
from support.servers import DATA
from support.torch_training import LOSS, Training, read_snapshot, recorded

from tb_memplugin.analysis.leaks.over_steps import possible_state_bytes, retained_gradients
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.torch_roles import optimizer_steps
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.kinds import memory_profile
from tb_memplugin.questions.kinds.leaks import findings
from tb_memplugin.readers import open_file

REAL = DATA / "torch_snapshot"
H100 = Path(__file__).parents[2] / "data" / "h100"


@pytest.mark.parametrize("clears", [True, False])
@pytest.mark.parametrize("marks", [True, False])
def test_every_tensor_has_the_role_that_the_loop_gave_it(clears: bool, marks: bool) -> None:
    training = Training(6, clears=clears, marks=marks)
    recording = recorded(training)
    found = dict(zip(recording.allocations.start.tolist(), map(Role, roles(recording).tolist()), strict=True))
    wrong = {event: (role, found[event]) for event, role in training.truth.items() if found[event] is not role}
    assert wrong == {}


@pytest.mark.parametrize("clears", [True, False])
def test_gradients_that_are_not_cleared_survive_into_the_next_iteration(clears: bool) -> None:
    training = Training(6, clears=clears)
    found = retained_gradients(recorded(training))
    sizes = [training.allocator.truth[event] for event, role in training.truth.items() if role is Role.GRADIENT]
    assert len(found.position) == 5  # after the optimizer's first step and before each later step
    assert found.gradients.tolist() == [0 if clears else sum(sizes[: training.layers])] * 5
    state = [training.allocator.truth[event] for event, role in training.truth.items() if role is Role.OPTIMIZER_STATE]
    assert found.state.tolist() == [sum(state)] * 5


def test_optimizer_state_appears_in_the_first_step() -> None:
    training = Training(3, clears=True)
    recording = recorded(training)
    state = recording.allocations.start[roles(recording) == Role.OPTIMIZER_STATE]
    first = min(event for event, entry in enumerate(training.allocator.trace) if "torch/optim/sgd" in str(entry))
    assert state.min() == first
    assert state.max() < retained_gradients(recording).position[0]


def test_what_zero_grad_frees_are_gradients_where_a_fused_optimizer_leaves_no_trace() -> None:
    training = Training(4, clears=True, marks=False, fused=True)
    recording = recorded(training)
    rows = recording.allocations
    found = dict(zip(rows.start.tolist(), roles(recording).tolist(), strict=True))
    cleared = set(rows.start[rows.end < recording.length].tolist())
    gradients = {event for event, role in training.truth.items() if role is Role.GRADIENT and event in cleared}
    assert len(gradients) == 3 * training.layers
    assert {found[event] for event in gradients} == {Role.GRADIENT}


def test_what_the_source_says_stands() -> None:
    training = Training(2, clears=True)
    snapshot = training.snapshot()
    for entry in snapshot["device_traces"][0]:
        entry["category"] = "input"
    recording = read_snapshot(snapshot)
    assert set(roles(recording)[recording.allocations.start >= 0].tolist()) == {Role.INPUT}


def test_frees_without_stacks_do_not_divide_the_optimizers_steps() -> None:
    snapshot = Training(5, clears=True, marks=False).snapshot()
    for entry in snapshot["device_traces"][0]:
        if entry["action"].startswith("free"):
            entry["frames"] = []
    begins, ends = optimizer_steps(read_snapshot(snapshot))
    assert len(begins) == len(ends) == 5


def test_without_stacks_nothing_is_guessed() -> None:
    training = Training(3, clears=True, marks=False)
    snapshot = training.snapshot()
    for entry in snapshot["device_traces"][0]:
        entry["frames"] = []
    recording = read_snapshot(snapshot)
    assert set(roles(recording).tolist()) == {Role.UNKNOWN}


@pytest.mark.skipif(not REAL.exists(), reason="needs the real snapshots beside the repository")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # One step of a hand-written AdamW on a transformer with 111 parameters. It was recorded after the parameters
        # were allocated; each has two moments.
        ("bcrafton_memory_snapshot", {Role.OPTIMIZER_STATE: 222}),
        # Attention, forward and backward, without an optimizer: gradients of q, k and v. The cuBLAS workspace of the
        # backward pass, which stays as they do, is not one.
        ("silmont2000_mem_snapshot", {Role.GRADIENT: 3, Role.ACTIVATION: 4}),
    ],
)
def test_real_snapshots(name: str, expected: dict[Role, int]) -> None:
    path = REAL / f"{name}.pickle"
    [part] = open_file(path.read_bytes(), str(path), host="gpu")
    [recording] = part.read()
    found = np.bincount(roles(recording), minlength=len(Role))
    assert {role: int(found[role]) for role in expected} == expected


def recorded_from(training: Training, first: int) -> Recording:
    """Return the recording of a trace that begins at this event: older blocks have no stack."""
    snapshot = training.snapshot()
    del snapshot["device_traces"][0][:first]
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            block["frames"] = []
    return read_snapshot(snapshot)


def older_roles(recording: Recording) -> list[Role]:
    return [Role(role) for role in roles(recording)[recording.allocations.start < 0].tolist()]


@pytest.mark.parametrize("clears", [True, False])
@pytest.mark.parametrize("marks", [True, False])
def test_what_is_older_than_the_trace_and_matches_the_gradients_one_to_one_are_parameters(
    clears: bool, marks: bool
) -> None:
    training = Training(4, clears=clears, marks=marks)
    first = next(event for event, role in training.truth.items() if role == Role.ACTIVATION)
    recording = recorded_from(training, first)
    assert older_roles(recording) == [Role.PARAMETER] * training.layers
    assert possible_state_bytes(recording, peak(recording).position) == 0


def test_what_is_older_than_the_trace_and_matches_the_gradients_twice_is_told_apart_from_the_rest() -> None:
    training = Training(6, clears=True)
    steps = [event for event, entry in enumerate(training.allocator.trace) if "torch/optim/sgd" in str(entry)]
    state = max(event for event, role in training.truth.items() if role is Role.OPTIMIZER_STATE)
    first = next(event for event in steps if event > state + 2)  # all optimizer state is older
    recording = recorded_from(training, first)
    position = peak(recording).position
    older = sum(
        training.allocator.truth[event]
        for event, role in training.truth.items()
        if role in (Role.PARAMETER, Role.OPTIMIZER_STATE)
    )
    assert Role.PARAMETER not in older_roles(recording)
    assert possible_state_bytes(recording, position) >= older
    shown = {figure.key: figure.bytes for figure in memory_profile.figures(recording)}
    assert shown["possible_state"] == possible_state_bytes(recording, position)


def test_an_older_block_of_another_size_is_no_parameter() -> None:
    training = Training(4, clears=True)
    first = next(event for event, role in training.truth.items() if role == Role.ACTIVATION)
    snapshot = training.snapshot()
    del snapshot["device_traces"][0][:first]
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    for block in blocks:
        block["frames"] = []
    smallest = min((b for b in blocks if b["state"] == "active_allocated"), key=lambda block: int(block["size"]))
    smallest["requested_size"] -= 4
    found = older_roles(read_snapshot(snapshot))
    assert sorted(found) == sorted([Role.PARAMETER] * (training.layers - 1) + [Role.UNKNOWN])


@pytest.mark.parametrize("clears", [True, False])
def test_the_leak_analysis_says_whether_gradients_survive(clears: bool) -> None:
    sentences = findings(recorded(Training(6, clears=clears)))["retained_gradients"]
    assert ("Gradients do not survive into the next iteration" in sentences[0]) == clears
    assert ("Gradients survive into the next iteration" in sentences[0]) != clears
    assert "optimizer's state" in sentences[1] and "first step" in sentences[1]


def test_figures_of_tensors() -> None:
    training = Training(4, clears=True)
    recording = recorded(training)
    shown = {figure.key: figure.bytes for figure in memory_profile.figures(recording)}
    assert shown["reserved"] == sum(segment.size for segment in training.allocator.segments)
    assert recording.reserved is not None
    position = peak(recording).position
    assert shown["cached"] == recording.reserved[position] - peak(recording).bytes
    asked = {event: entry["size"] for event, entry in enumerate(training.allocator.trace) if entry["action"] == "alloc"}
    rows = recording.allocations
    live = np.flatnonzero((rows.start <= position) & (position < rows.end))
    assert shown["rounding"] == sum(
        training.allocator.truth[event] - asked[event] for event in rows.start[live].tolist()
    )


@pytest.mark.parametrize(("steps", "unit"), [(True, "step"), (False, "run of Optimizer.step#SGD.step")])
@pytest.mark.parametrize("leaks", [True, False])
def test_what_grows_from_step_to_step_is_found(steps: bool, unit: str, leaks: bool) -> None:
    found = findings(recorded(Training(12, clears=True, leaks=leaks, steps=steps)))
    assert (found["unit"], found["steps"]) == (unit, 12)
    leaking = [finding for finding in found["findings"] if finding["verdict"] == "leak"]
    assert [finding["bytes_per_step"] for finding in leaking] == [LOSS] * leaks
    assert all("append_loss" in finding["site"] for finding in leaking)


def test_without_steps_it_is_said_how_pytorch_marks_them() -> None:
    message = findings(recorded(Training(12, clears=True, marks=False)))["message"]
    assert message is not None
    assert "torch.profiler.record_function" in message and "jax" not in message


def bytes_of_roles_on_h100(name: str) -> dict[Role, int]:
    """Return the bytes of each role at the peak of two steps on an H100."""
    data = gzip.decompress((H100 / f"{name}_stacks.pickle.gz").read_bytes())
    [recording] = [recording for part in open_file(data, "snapshot.pickle") for recording in part.read()]
    rows, position = recording.allocations, peak(recording).position
    live = (rows.start <= position) & (rows.end > position)
    return {role: int(rows.charge[live & (roles(recording) == role)].sum()) for role in Role}


def test_stacks_of_python_alone_lead_to_the_roles_of_all_stacks() -> None:
    python, everything = bytes_of_roles_on_h100("encoder_python"), bytes_of_roles_on_h100("encoder_all")
    assert everything[Role.UNKNOWN] < MIB
    for role in (Role.PARAMETER, Role.OPTIMIZER_STATE, Role.ACTIVATION):
        assert python[role] == pytest.approx(everything[role], rel=0.02) and everything[role] > 100 * MIB
    workspaces = 65 * MIB  # of cuBLAS, for the streams of both passes: only frames of C++ name it
    others = sum(size for role, size in python.items() if role in (Role.UNKNOWN, Role.GRADIENT))
    assert others == pytest.approx(workspaces, rel=0.02)
    assert everything[Role.TEMPORARY] - python[Role.TEMPORARY] == pytest.approx(workspaces, rel=0.02)


@pytest.mark.parametrize(
    ("name", "moments"),
    [("encoder_all", 2), ("gpt2_b8_bf16_all", 2), ("resnet50_b64_all", 1), ("vit_b_16_b32_bf16_all", 2)],
)
def test_stacks_of_an_h100_lead_to_the_roles_of_what_ran(name: str, moments: int) -> None:
    """The optimizer has so many tensors for each parameter; buffers, too, are parameters."""
    found = bytes_of_roles_on_h100(name)
    assert found[Role.UNKNOWN] < 0.01 * sum(found.values())
    assert found[Role.OPTIMIZER_STATE] == pytest.approx(moments * found[Role.PARAMETER], rel=0.05)
    assert found[Role.ACTIVATION] > sum(found.values()) / 2
