"""The step and the target that programs of stored dumps stand for. Nothing is compiled."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.servers import TESTS

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError
from tb_memplugin.fit.dumped import dumped_step
from tb_memplugin.model.recording import Recording

DUMPS = TESTS / "data" / "xla_dumps"


def programs(folder: Path) -> list[Recording]:
    return [one for one in listing_of_path(str(folder)).recordings if one.is_main_memory]


@pytest.mark.parametrize(
    ("folder", "target"),
    [("tpu_v5e", "v5e:1x1"), ("tpu_v5e_text", "v5e:1x1"), ("gpu_h100", "h100:1"), ("cpu_compressed", "cpu:1")],
)
def test_a_program_is_compiled_for_the_chip_that_its_dump_names(folder: str, target: str) -> None:
    for program in programs(DUMPS / folder):
        step, found = dumped_step(program)
        path, _, module = step.rpartition(":")
        assert found == target and Path(path).is_file() and f".{module}." in Path(path).name


def test_more_devices_need_a_larger_slice() -> None:
    program = programs(DUMPS / "tpu_v5e")[0]
    assert program.program is not None
    for devices, target in ((2, "v5e:2x2"), (8, "v5e:2x4"), (256, "v5e:16x16")):
        assert dumped_step(replace(program, program=replace(program.program, devices=devices)))[1] == target
    with pytest.raises(InputError, match="No target to compile for"):
        dumped_step(replace(program, program=replace(program.program, devices=300)))


def test_what_is_missing_is_named_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no program before optimization.*dump again with XLA_FLAGS"):
        dumped_step(programs(DUMPS / "tpu_v5e_kernels")[0])
    on_chip = next(one for one in listing_of_path(str(DUMPS / "tpu_v5e")).recordings if not one.is_main_memory)
    with pytest.raises(InputError, match="main memory"):
        dumped_step(on_chip)
    with pytest.raises(InputError, match="Not a program of an XLA dump"):
        dumped_step(replace(on_chip, source="error.txt"))

    for file in (DUMPS / "gpu_h100").iterdir():
        if "gpu_target_config" not in file.name:
            shutil.copy(file, tmp_path)
    with pytest.raises(
        InputError, match=r"no file beside the program names its chip, 1 device\b.*fit FILE.py:FUNCTION"
    ):
        dumped_step(programs(tmp_path)[0])
