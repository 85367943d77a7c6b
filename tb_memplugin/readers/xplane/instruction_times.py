"""Measured times of a program's instructions, from the events of the devices that ran it, or of the host's threads."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import F64, I64
from tb_memplugin.model.program import InstructionTimes
from tb_memplugin.model.text import Text
from tb_memplugin.native.xplane.all_events import every
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.xplane.planes import GPU_PLANE, HOST_PLANE, ID_STAT, NAME_AND_ID, Plane, read_planes
from tb_memplugin.readers.xplane.spans import tpu_core_planes

OPS_LINE = "XLA Ops"  # of a TPU; others have asynchronous copies, which run beside these
OP_STAT, MODULE_STAT = "hlo_op", "hlo_module"
GRAPH = "command_buffer"  # in place of an instruction: a graph of kernels
INSTRUCTION = re.compile(r"%?([\w.\-]+)")  # of an event's name, which may be the whole text of the instruction
PICOSECONDS = 1e-12


class _Found(NamedTuple):
    """Runs of instructions on one device. Arrays have an entry for each name."""

    names: list[str]
    runs: I64
    seconds: F64


def instruction_times(data: bytes | memoryview, key: str, path: str) -> InstructionTimes:
    """Read the times of the program with this key, `name(program id)`, from an XSpace.

    Without devices they are those of the CPU's threads. InputError where the profile is damaged.
    """
    try:
        planes = read_planes(data, ReadBudget(data, path))
        named = NAME_AND_ID.match(key)
        module, number = (named[1], int(named[2])) if named else (key, 0)
        tpus = tpu_core_planes(planes)
        gpus = {plane.name.removeprefix("/device:"): plane for plane in planes if GPU_PLANE.fullmatch(plane.name)}
        if tpus:
            return _joined({name: _of_tpu(plane, number) for name, plane in tpus.items()})
        hosts = {plane.name: plane for plane in planes if plane.name == HOST_PLANE}
        read = partial(_of_threads, module=module, number=number)
        return _joined({name: read(plane) for name, plane in (gpus or hosts).items()})
    except ValueError as error:
        raise InputError(f"the times of a profile are damaged ({error})", path, "profile again") from error


def _of_tpu(plane: Plane, number: int) -> _Found:
    """Return the runs of a program's instructions on a TPU, whose events name the program in their metadata."""
    events = plane.metadata["event_metadata"]
    stats = plane.metadata["event_metadata.value.stats"]
    wanted = [key for key, name in plane.stat_names.items() if name == ID_STAT]
    programs = stats["uint64_value"] | stats["int64_value"]  # one of them is 0
    is_of_program = np.isin(stats["metadata_id"], wanted) & (programs.view(np.uint64) == np.uint64(number % 2**64))
    rows = np.unique(stats["parent"][is_of_program])
    kinds = {int(events["key"][row]): kind for kind, row in enumerate(rows.tolist())}
    found = every(plane.data, kinds, {}, plane.lines_named(OPS_LINE), plane.budget)
    is_known = found["kind"] >= 0
    labels = [
        plane.text(events["value.display_name"], row) or _instruction(plane.text(events["value.name"], row))
        for row in rows.tolist()
    ]
    return _summed(labels, found["kind"][is_known], found["duration_ps"][is_known])


def _instruction(text: str) -> str:
    found = INSTRUCTION.match(text)
    return found[1] if found else text


def _of_threads(plane: Plane, module: str, number: int) -> _Found:
    """Return the runs of a program's instructions in a GPU's streams or a CPU's threads, whose events name both.

    Kernels that a GPU runs as a graph have the graph in place of the instruction. Their own names are those of
    instructions, where XLA has generated them.
    """
    columns = {name: column for column, name in enumerate((OP_STAT, MODULE_STAT, ID_STAT))}
    wanted = {key: columns[name] for key, name in plane.stat_names.items() if name in columns}
    names = list(plane.event_names.values())
    found = every(plane.data, plane.event_kinds, wanted, budget=plane.budget)
    values = np.full((len(columns), len(found["kind"])), -1, dtype=np.int64)
    values[found["column"], found["owner"]] = found["value"]
    op, modules, programs = values
    named = [key for key, name in plane.stat_names.items() if name == module]
    rows = np.flatnonzero((op >= 0) & np.isin(modules, named) & (programs.view(np.uint64) == np.uint64(number % 2**64)))
    graphs = [key for key, name in plane.stat_names.items() if name.startswith(GRAPH)]
    own = np.where(np.isin(op[rows], graphs) & (found["kind"][rows] >= 0), -1 - found["kind"][rows], op[rows])
    used, kind = np.unique(own, return_inverse=True)
    labels = [plane.stat_names.get(key, "") if key >= 0 else names[-1 - key] for key in used.tolist()]
    return _summed(labels, kind.ravel(), found["duration_ps"][rows])


def _summed(labels: Sequence[str], kind: I64, duration_ps: I64) -> _Found:
    runs = np.bincount(kind, minlength=len(labels))
    seconds: F64 = np.bincount(kind, np.maximum(duration_ps, 0) * PICOSECONDS, len(labels)).astype(np.float64)
    ran = np.flatnonzero(runs)
    return _Found([labels[row] for row in ran.tolist()], runs[ran], seconds[ran])


def _joined(devices: Mapping[str, _Found]) -> InstructionTimes:
    """Return the runs on all devices, by the name of the instruction."""
    devices = {name: found for name, found in devices.items() if found.names}
    numbers = {
        name: row for row, name in enumerate(dict.fromkeys(name for found in devices.values() for name in found.names))
    }
    runs, seconds = np.zeros((2, len(devices), len(numbers)))
    for device, found in enumerate(devices.values()):
        at = [numbers[name] for name in found.names]
        np.add.at(runs[device], at, found.runs)
        np.add.at(seconds[device], at, found.seconds)
    mean = seconds / np.where(runs > 0, runs, np.nan)
    return InstructionTimes(
        name=Text.of(list(numbers)),
        runs=runs.sum(axis=0).astype(np.int64),
        seconds=seconds.sum(axis=0),
        slowest=np.fmax.reduce(mean, axis=0, initial=0.0),
        fastest=np.fmin.reduce(mean, axis=0, initial=np.inf),
        devices=tuple(devices),
    )
