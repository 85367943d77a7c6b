"""The program before optimization beside a compiled one in an XLA dump, and the target that it was compiled for."""

import os
from pathlib import Path

from tb_memplugin.errors import InputError
from tb_memplugin.logdir import dumped_file
from tb_memplugin.logdir.names import parse_program
from tb_memplugin.model.accelerators import GPUS, TPUS, Chip
from tb_memplugin.model.out_of_memory import DUMP_FLAGS
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.xla_dump import read_target
from tb_memplugin.sizes import counted
from tb_memplugin.targets import Target, slices

STAGES = (".before_optimizations.hlo.pb", ".before_optimizations.hlo.pb.gz")
USE_CODE = "compile the step itself with `tb-memplugin fit FILE.py:FUNCTION --try`"


def dumped_step(recording: Recording) -> tuple[str, str]:
    """Return a program of a dump as a step that can be compiled again, and its target. InputError where it cannot."""
    name = parse_program(os.path.basename(recording.source)) if recording.kind.has_program else None
    if name is None or not os.path.isfile(recording.source):
        raise InputError("Not a program of an XLA dump on this disk", recording.id, f"dump it with {DUMP_FLAGS}")
    if not recording.is_main_memory:
        raise InputError("Compiles are compared by main memory", recording.id, "choose that of the program")
    prefix = os.path.join(os.path.dirname(os.path.abspath(recording.source)), name.prefix)
    before = next((prefix + stage for stage in STAGES if os.path.isfile(prefix + stage)), None)
    if before is None:
        text = f"dump again with {DUMP_FLAGS}, and keep all files"
        raise InputError("The dump has no program before optimization", prefix + STAGES[0], text)
    return f"{before}:{name.module or 'program'}", str(_target(recording))


def _target(recording: Recording) -> Target:
    """Return the chip that the files beside a program name, with as many devices as the program is partitioned for."""
    assert recording.program is not None
    devices, described = recording.program.devices, dumped_file(recording.source).program
    beside = [path for path in (described.beside if described is not None else ()) if os.path.isfile(path)]
    found = read_target((path, Path(path).read_bytes()) for path in beside)
    chip = _chip_name(found[0]) if found is not None else ""
    if not chip and recording.program.backend is Backend.CPU:
        chip = "cpu"
    sizes = slices(chip) if chip in TPUS else [Target(chip, (devices,))] if chip else []
    target = next((one for one in sizes if one.devices >= devices), None)
    if target is None:
        unknown = found[0].name if found is not None else "no file beside the program names its chip"
        text = f"No target to compile for ({unknown}, {counted(devices, 'device')})"
        raise InputError(text, recording.source, USE_CODE)
    return target


def _chip_name(chip: Chip) -> str:
    return next((name for name, tpu in TPUS.items() if tpu.chip == chip), "") or next(
        (name for name, gpu in GPUS.items() if gpu.name == chip.name), ""
    )
