"""Windows into the operands of a Pallas kernel, and its scratch memory, as its code declares them."""

import re
from base64 import b64decode
from math import prod
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.out_of_memory import KernelBuffer
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.kernels.bytecode import Bytecode, MemRef

BODY = re.compile(rb'"custom_call_config":\{"body":"([A-Za-z0-9+/=]*)"')
LANES, SUBLANE_BYTES, WORD = 128, 32, 4  # the size of a tile: VMEM consists of tiles
BITS = re.compile(r"\D{0,4}(\d{1,2})")
TUPLE = re.compile(r", (?=\w+\[)")
IN_VMEM = "S(1)"  # in the layout of an operand that the compiler has put into VMEM: the kernel needs no window
SINGLE = "synchronous"  # the pipeline mode of a window with one buffer, which is filled while the kernel waits
MAX_BYTES = 1 << 40


def windows(config: bytes, operands: tuple[str, ...], result: str, budget: ReadBudget) -> tuple[KernelBuffer, ...]:
    """Return a kernel's buffers in VMEM from its configuration, in order; none where the code cannot be read.

    A window has two buffers, one of which is filled while the other is used, unless the kernel says otherwise or has
    one iteration only. `operands` and `result` are shapes. Raises the error of `budget` for code that takes too much.
    """
    body = BODY.search(config)
    if body is None:
        return ()
    try:
        code = Bytecode(b64decode(body[1]), budget)
        for function in code.dictionaries():
            if {"function_type", "scratch_operands"} <= function.keys():
                return tuple(_buffers(code, function, operands, result, budget))
    except (ValueError, IndexError, OverflowError, StopIteration):
        pass
    return ()


class VmemBlock(NamedTuple):
    """A block of memory: its type, its bytes in VMEM, and its shape as text."""

    memory: MemRef
    bytes: int
    shape: str


def _block(memory: MemRef | None) -> VmemBlock | None:
    if memory is None:
        return None
    return VmemBlock(memory, block_bytes(memory), f"{memory.element}[{','.join(map(str, memory.shape))}]")


def _buffers(
    code: Bytecode, function: dict[str, int], operands: tuple[str, ...], result: str, budget: ReadBudget
) -> list[KernelBuffer]:
    inputs = code.inputs(code.type_of(function["function_type"]))
    blocks = {number: _block(code.memref(number)) for number in set(inputs)}  # each once: many inputs may share one
    memory = [block for number in inputs if (block := blocks[number])]
    prefetched = code.integer(function["scalar_prefetch"]) if "scalar_prefetch" in function else 0
    scratch = code.integer(function["scratch_operands"])
    memory = memory[max(prefetched, 0) :]
    window_count = len(memory) - max(scratch, 0)
    modes = _single_buffered(code, function, window_count)
    budget.charge(len(result))
    results = TUPLE.split(result.strip("()"))
    into = list(operands[prefetched:])
    into = [*into, *results][-window_count:] if window_count > 0 else []
    first_result = len(into) - len(results)
    found: list[KernelBuffer] = []
    for number, block in enumerate(memory):
        if not block.memory.space.endswith("<vmem>"):
            continue
        if number >= window_count:
            name, full, buffers = f"scratch {number - window_count}", "", 1
        else:
            of_result = number >= first_result
            name = f"output window {number - first_result}" if of_result else f"input window {number}"
            full = into[number] if number < len(into) else ""
            budget.charge(len(full))  # the same operand may be of many windows
            buffers = 0 if IN_VMEM in full else 1 if number in modes else 2
        size = min(buffers * block.bytes, MAX_BYTES)
        found.append(KernelBuffer(name, size, block.shape, full.partition("{")[0], buffers))
    return found


def _single_buffered(code: Bytecode, function: dict[str, int], count: int) -> set[int]:
    """Return the numbers of the windows that have one buffer."""
    bounds = code.dense_integers(function["iteration_bounds"]) if "iteration_bounds" in function else np.empty(0)
    if "window_params" not in function or bool((bounds == 1).all()):
        return set(range(count))
    numbers = code.array(function["window_params"])
    windows = {number: code.dictionary(number) for number in set(numbers)}  # each once: many windows may share one
    single = {
        number
        for number, window in windows.items()
        if "pipeline_mode" in window and SINGLE in code.text(window["pipeline_mode"])
    }
    return {window for window, number in enumerate(numbers) if number in single}


def block_bytes(block: MemRef) -> int:
    """Return the bytes of a block in VMEM, where rows are padded to whole lanes, and columns to whole tiles.

    A block with fewer rows than a tile is padded to the next power of two; rows of 16 bits come in pairs.
    """
    bits = BITS.match(block.element)
    size = max(int(bits[1]) if bits else 8, 8) // 8
    *outer, rows, lanes = (1, 1, *(max(length, 0) for length in block.shape))
    tile = SUBLANE_BYTES // size
    rows = -(-rows // tile) * tile if rows > tile else max(1 << max(rows - 1, 0).bit_length(), WORD // size)
    return prod(outer) * rows * -(-lanes // LANES) * LANES * size
