"""Hints for a Pallas kernel that does not fit into a TPU's on-chip memory."""

from __future__ import annotations

import re

from tb_memplugin.model.chips import TPU7X, V4, V5E, V5P, V6E
from tb_memplugin.model.kernels import KernelBuffer
from tb_memplugin.model.out_of_memory import OutOfMemory
from tb_memplugin.sizes import bytes_text

CHIPS = (V4, V5E, V5P, V6E, TPU7X)
# What libtpu 0.0.52 allows a kernel on a TPU v5e without the option.
DEFAULT_VMEM_LIMIT = 16 << 20
SEMAPHORE_BYTES = 4
MIN_ROWS = 8  # of an f32 tile: a smaller block is padded to it
BLOCK = re.compile(r"(\w{1,10})\[(\d{1,18}(?:,\d{1,18}){0,30})\]")


def kernel_hints(memory: str, failure: OutOfMemory) -> list[str]:
    """Return what to change in a kernel, the easiest change first; empty for other memories."""
    if failure.asked is None or failure.capacity is None or failure.asked <= failure.capacity:
        return []
    match memory.partition(" ")[0].upper():
        case "VMEM" if failure.kernel_limit:
            return _raise_limit(failure.asked, failure.capacity)
        case "VMEM" if failure.kernel_buffers:
            return _shrink_blocks(failure.kernel_buffers, failure.asked, failure.capacity)
        case "SMEM":
            return [
                f"Keep only scalars in SMEM, of which the kernel has {bytes_text(failure.capacity)}: leave the array "
                "in HBM (pl.BlockSpec(memory_space=pl.ANY)) and copy parts of it with pltpu.async_copy, or give it a "
                "block in VMEM."
            ]
        case "SFLAG":
            return [
                f"Use at most {failure.capacity // SEMAPHORE_BYTES:,} semaphores; the kernel has "
                f"{failure.asked // SEMAPHORE_BYTES:,}. Wait for a copy before the next one, and reuse its semaphore."
            ]
    return []


def _raise_limit(asked: int, limit: int) -> list[str]:
    chips = [chip.name for chip in CHIPS if chip.vmem is not None and chip.vmem > asked]
    smaller = f"Use blocks {_factor(asked, limit)} times smaller: the limit of the kernel is {bytes_text(limit)}."
    if not chips:
        return [f"{smaller} No TPU has {bytes_text(asked)} of VMEM."]
    option = _option(asked)
    has = "has" if len(chips) == 1 else "have"
    return [f"Raise the limit of the kernel: {option}. {', '.join(chips)} {has} more VMEM than that.", smaller]


def _shrink_blocks(buffers: tuple[KernelBuffer, ...], asked: int, capacity: int) -> list[str]:
    # The compiler needs some of the memory itself: 64 KiB on a TPU v5p. A text that lists one window stops at the first
    # that does not fit, so that another of its size needs room too.
    windows = [buffer for buffer in buffers if buffer.full_shape]
    factor = _factor(asked, (capacity if len(windows) > 1 else capacity // 2) - 1)
    if not windows:
        return [f"Use scratch memory at least {factor} times smaller: the chip has {bytes_text(capacity)} of VMEM."]
    largest = max(windows, key=lambda window: window.bytes)
    block = _smaller_block(largest.shape, factor)
    size = sum(window.bytes for window in windows) // factor
    text = f"Use blocks {factor} times smaller"
    if block:
        text += f", such as {block} for {largest.operand} in place of {largest.shape}"
    listed = "the windows then take" if len(windows) > 1 else "this window then takes"
    hints = [f"{text}: {listed} {bytes_text(size)} of {bytes_text(capacity)}."]
    if (needed := size if len(windows) > 1 else 2 * size) > DEFAULT_VMEM_LIMIT:
        hints[0] += f" Windows of more than {bytes_text(DEFAULT_VMEM_LIMIT)} in all also need {_option(needed)}."
    if largest.buffers > 1:
        single = "pl.BlockSpec(..., pipeline_mode=pl.Buffered(1))"
        hints.append(f"An operand that is the same in every step of the grid needs one buffer, not two: {single}.")
    return hints


def _option(size: int) -> str:
    return f"pl.pallas_call(..., compiler_params=pltpu.CompilerParams(vmem_limit_bytes={-(-size // 2**20)} * 2**20))"


def _factor(asked: int, goal: int) -> int:
    """Return the least power of two by which `asked` must be divided to be at most `goal`."""
    return 1 << max((-(-asked // max(goal, 1)) - 1).bit_length(), 0)


def _smaller_block(shape: str, factor: int) -> str:
    """Return a block with its second last or an earlier dimension divided; empty where none divides evenly."""
    found = BLOCK.match(shape)
    dimensions = [int(text) for text in found[2].split(",")] if found else []
    for number, dimension in enumerate(dimensions[:-1]):
        least = MIN_ROWS if number == len(dimensions) - 2 else 1
        if dimension % factor == 0 and dimension // factor >= least:
            dimensions[number] //= factor
            return f"{found[1] if found else ''}[{','.join(map(str, dimensions))}]"
    return ""
