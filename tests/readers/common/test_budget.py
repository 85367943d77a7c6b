"""The memory that reading a file may take."""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.servers import DEMO, TESTS
from support.watch_files import watch_bytes

from tb_memplugin import free_memory, readers
from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.formats import FORMATS
from tb_memplugin.readers.common.budget import ReadBudget, decompress
from tb_memplugin.readers.watch_layout import DeviceColumn

MIB = 1 << 20


def test_beyond_the_limit_the_error_names_the_file_its_size_and_the_limit() -> None:
    budget = ReadBudget(b"ab", "a.prof")
    with pytest.raises(InputError, match=r"its 2 B would take 300.*a\.prof.*256"):
        budget.charge(300 * MIB)


def test_what_is_refused_is_not_counted() -> None:
    budget = ReadBudget(b"ab", "a.prof")
    budget.charge(200 * MIB)
    with pytest.raises(InputError):
        budget.charge(100 * MIB)
    budget.charge(56 * MIB)
    with pytest.raises(InputError):
        budget.charge(MIB)


def test_a_larger_file_may_take_more() -> None:
    ReadBudget(bytes(10 * MIB), "a.prof").charge(300 * MIB)


def test_too_little_free_memory_is_no_fault_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 40 * MIB)
    with pytest.raises(ReadError, match=r"a\.prof"):
        ReadBudget(b"ab", "a.prof").charge(50 * MIB)


def test_the_free_memory_is_positive_where_it_is_known() -> None:
    assert (free_memory.free_bytes() or MIB) >= MIB


def test_content_that_is_out_of_proportion_to_the_file_is_refused() -> None:
    bomb = gzip.compress(bytes(100 * MIB), 9)
    with pytest.raises(InputError, match="too large"):
        decompress(bomb, ReadBudget(bomb, "a.json.gz"))


def test_content_in_proportion_to_the_file_is_charged() -> None:
    packed = gzip.compress(bytes(10 * MIB))
    budget = ReadBudget(packed, "a.json.gz")
    assert bytes(decompress(packed, budget)) == bytes(10 * MIB)
    assert budget.used == 10 * MIB


def test_every_loop_over_protocol_buffers_has_a_budget() -> None:
    loops = {"scan", "collect", "every", "any_event", "numbers", "Chains"}
    arguments = {"scan": 4, "collect": 5, "every": 5, "any_event": 2, "numbers": 5, "Chains": 3}
    missing = []
    rooms = [Path(readers.__file__).parent / room for room in ("xplane", "hlo", "pprof", "xla_dump")]
    for path in (path for room in rooms for path in room.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in loops:
                # A starred argument is the two columns of Spans.
                given = len(node.args) + sum(isinstance(one, ast.Starred) for one in node.args)
                if given < arguments[node.func.id] and "budget" not in {one.arg for one in node.keywords}:
                    missing.append(f"{path.name}:{node.lineno}: {node.func.id}")
    assert not missing


DEMO_PROGRAM = "h100_train_step/module_0001.jit_train_step.sm_9.0a_gpu_after_optimizations.hlo.pb.gz"
ONE_OF_EACH: dict[str, Callable[[], tuple[str, bytes]]] = {
    "XPlane profile": lambda: ("a.xplane.pb", (DEMO / "leak/plugins/profile/cpu/localhost.xplane.pb").read_bytes()),
    "compiled program": lambda: ("a.hlo.pb.gz", (DEMO / DEMO_PROGRAM).read_bytes()),
    "compiled program as text": lambda: (
        "a-buffer-assignment.txt",
        next((TESTS / "data/xla_dumps/cpu_text_only").glob("*-buffer-assignment.txt")).read_bytes(),
    ),
    "JAX device profile": lambda: ("a.prof", (DEMO / "device_profile/memory.prof").read_bytes()),
    "PyTorch profile": lambda: ("a.raw.json", json.dumps([[time, 0, 512, 1] for time in range(100)]).encode()),
    "PyTorch snapshot": lambda: (
        "a.pickle",
        gzip.decompress((TESTS / "data/h100/encoder_all_stacks.pickle.gz").read_bytes()),
    ),
    "device memory over time": lambda: ("a.watch", watch_bytes({"GPU_0": [{DeviceColumn.IN_USE: 5}] * 100})),
}
READ_BY_LINEAR_PATTERNS = {"out-of-memory error"}  # of at most OOM_TEXT_BYTES


def test_there_is_a_file_of_each_format() -> None:
    assert {known.label for known in FORMATS} == ONE_OF_EACH.keys() | READ_BY_LINEAR_PATTERNS


@pytest.mark.parametrize("label", ONE_OF_EACH)
def test_every_reader_charges_the_work_of_its_bytes(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    budgets: list[ReadBudget] = []
    make = ReadBudget.__init__

    def noted(self: ReadBudget, data: bytes | memoryview, path: str) -> None:
        make(self, data, path)
        budgets.append(self)

    monkeypatch.setattr(ReadBudget, "__init__", noted)
    name, data = ONE_OF_EACH[label]()
    for part in readers.open_file(data, name):
        assert part.read()
    assert any(budget.size == len(data) and len(data) <= budget.worked <= budget.work_limit / 10 for budget in budgets)


def test_a_file_that_is_not_compressed_is_neither_copied_nor_charged() -> None:
    data = b"plain"
    budget = ReadBudget(data, "a.prof")
    assert decompress(data, budget) is data
    assert not budget.used
