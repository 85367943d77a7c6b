"""Detection of the backend that compiled a program, on real profiles of CPU, GPU and TPU."""

from __future__ import annotations

import pytest
from support.hand_built import MIB, Handmade, read
from support.profiles import Compiled, compiled_programs
from support.servers import DATA

from tb_memplugin.model.program import Backend
from tb_memplugin.readers.hlo import read_hlo

OF_CPU = {"leak", "leak_mended", "oom", "scan_remat", "train_step"}


def for_cpu(data: bytes) -> bool:
    return any(found.backend is Backend.CPU for found in read_hlo(data, source="test"))


@pytest.mark.parametrize("program", compiled_programs(), ids=str)
def test_real_programs(program: Compiled) -> None:
    assert for_cpu(program.data) == (program.profile in OF_CPU)


@pytest.mark.skipif(not DATA.exists(), reason="the data is not there")
def test_there_are_others_than_the_cpu_s() -> None:
    assert any(program.profile not in OF_CPU for program in compiled_programs())


@pytest.mark.parametrize(
    ("configuration", "backend"),
    [
        (b'{"outer_dimension_partitions":[],"fusion_config":{"kind":"__ynn_fusion"}}', Backend.CPU),
        (b'{"operation_queue_id":"0","wait_on_operation_queues":[]}', Backend.GPU),
        (b'{"flag_configs":[],"window_config":{"kernel_window_bounds":[]}}', Backend.TPU),
        (b'{"outer', Backend.UNKNOWN),
        (b"", Backend.UNKNOWN),
    ],
)
def test_configurations(configuration: bytes, backend: Backend) -> None:
    made = Handmade()
    instruction = made.instruction("fusion")
    made.computation.instructions[0].backend_config = configuration
    made.allocation((made.buffer(instruction, MIB), 0), size=MIB)
    program = read(made).program
    assert program is not None
    assert program.backend is backend
