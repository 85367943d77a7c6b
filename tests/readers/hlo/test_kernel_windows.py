"""Windows of Pallas kernels, against what the TPU compiler gives the kernels (programs/kernel_windows.py)."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers import TESTS

from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.kernels.bytecode import Bytecode, MemRef
from tb_memplugin.readers.hlo.kernels.windows import BODY, block_bytes, windows

KERNELS = json.loads((TESTS / "data" / "kernel_windows.json").read_text())
BUFFERS = {  # of each window, where operands are in HBM
    "two_buffers": {"input window 0": 2, "output window 0": 2},
    "bf16": {"input window 0": 2, "output window 0": 2},
    "the_same_block_again": {"input window 0": 2, "input window 1": 1, "output window 0": 2},
    "one_row": {"input window 0": 2, "input window 1": 1, "output window 0": 2},
    "one_row_bf16": {"input window 0": 2, "input window 1": 1, "output window 0": 2},
    "one_iteration": {"input window 0": 1, "output window 0": 1},
    "no_grid": {"input window 0": 1, "output window 0": 1},
    "asked_for_one_buffer": {"input window 0": 1, "output window 0": 2},
    "scratch": {"input window 0": 2, "output window 0": 2, "scratch 0": 1},
    "attention": {"input window 0": 2, "output window 0": 2},
}
# Registers are spilled, and values of several tiles are kept; how many bytes is the compiler's choice.
WITH_OTHERS = {"scratch", "attention"}


def read(kernel: dict[str, Any]) -> Any:
    config = kernel["config"].encode()
    return windows(config, tuple(kernel["operands"]), kernel["result"], ReadBudget(config, ""))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel['name']}-{kernel['target']}")
def test_windows_and_scratch_memory_are_what_the_kernel_takes(kernel: dict[str, Any]) -> None:
    found = read(kernel)
    in_vmem = {f"input window {number}" for number, shape in enumerate(kernel["operands"]) if "S(1)" in shape}
    expected = {name: 0 if name in in_vmem else count for name, count in BUFFERS[kernel["name"]].items()}
    assert {buffer.operand: buffer.buffers for buffer in found} == expected
    declared = sum(buffer.bytes for buffer in found)
    assert declared <= kernel["used"] if kernel["name"] in WITH_OTHERS else declared == kernel["used"]


def test_both_chips_are_covered() -> None:
    assert {(kernel["name"], kernel["target"]) for kernel in KERNELS} == {
        (name, target) for name in BUFFERS for target in ("v5e", "tpu7x")
    }


def test_blocks_are_padded_to_tiles() -> None:
    def size(element: str, *shape: int) -> int:
        return block_bytes(MemRef(shape, element, "vmem"))

    assert size("f32", 8, 128) == size("f32", 5, 100) == size("f32", 2, 4, 64) == 4096
    assert size("bf16", 1, 128) == size("bf16", 2, 128) == 512
    assert size("s8", 33, 128) == 64 * 128
    assert size("f32", 100) == 512 and size("f32") == 512


@given(st.data())
def test_damaged_code_gives_no_windows_or_some_but_never_fails(data: st.DataObject) -> None:
    kernel = data.draw(st.sampled_from(KERNELS))
    found = BODY.search(kernel["config"].encode())
    assert found is not None
    code = bytearray(b64decode(found[1]))
    for _ in range(data.draw(st.integers(1, 8))):
        code[data.draw(st.integers(0, len(code) - 1))] = data.draw(st.integers(0, 255))
    code = code[: data.draw(st.integers(0, len(code)))] if data.draw(st.booleans()) else code
    config = b'"custom_call_config":{"body":"' + b64encode(bytes(code)) + b'"'
    for buffer in windows(config, tuple(kernel["operands"]), kernel["result"], ReadBudget(config, "")):
        assert buffer.bytes >= 0


@pytest.mark.parametrize("code", [b"", b"ML\xefR", b"ML\xefR\x01x\0", b"text", b"ML\xefR\x01\0\x00" + b"\xff" * 9])
def test_what_is_no_bytecode_is_an_error(code: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        Bytecode(code, ReadBudget(code, "")).inputs(0)
    assert windows(b'"custom_call_config":{"body":"' + b64encode(code) + b'"', (), "", ReadBudget(code, "")) == ()
