"""Messages of the CUDA driver and of TensorFlow's operations, from below and above the allocator."""

import re
from collections.abc import Iterator
from math import prod

from tb_memplugin.model.out_of_memory import OutOfMemory
from tb_memplugin.readers.oom_text.failure import Failure, blocks, last_matches, size_of
from tb_memplugin.readers.oom_text.messages.bfc import IN_USE, LIMIT
from tb_memplugin.sizes import PRINTED as SIZE

MARKS = ("CUDA_ERROR_OUT_OF_MEMORY", "cuMemAllocAsync failed", "OOM when allocating")
DRIVER = re.compile(
    rf"failed to allocate {SIZE} \((\d{{1,18}}) bytes\) from device: CUDA_ERROR_OUT_OF_MEMORY(?![^\n]*retry)"
)
ASYNC = re.compile(r"(?<!\S)(\S{1,60}) cuMemAllocAsync failed to allocate (\d{1,18}) bytes")
DEVICE = re.compile(r"Free memory/Total memory: (\d{1,18})/(\d{1,18})")
TENSOR = re.compile(
    r"OOM when allocating tensor (?:with shape|of shape) ?\[([\d,]{0,300})\] and type ([\w:]{1,30})"
    r"(?: on (\S{1,200}))?(?: by allocator (\S{1,100}))?"
)
BYTES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4,
    "uint32": 4, "int64": 8, "uint64": 8, "bool": 1, "complex64": 8, "complex128": 16, "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}  # fmt: skip
ASYNC_CHARS = 4000


def find(text: str) -> Iterator[Failure]:
    for match in last_matches(DRIVER, text):
        yield Failure(match.start(), "driver", "", OutOfMemory(asked=int(match[1])))
    for head, block in blocks(ASYNC, text):
        yield _async(head, block[:ASYNC_CHARS])
    for match in last_matches(TENSOR, text):
        yield _tensor(match)


def _async(head: re.Match[str], block: str) -> Failure:
    device, in_use = DEVICE.search(block), size_of(IN_USE.search(block))
    free, total = (int(device[1]), int(device[2])) if device else (None, None)
    out_of_memory = OutOfMemory(
        asked=int(head[2]), free=free, capacity=total or size_of(LIMIT.search(block)), in_use=in_use
    )
    return Failure(head.start(), "driver", head[1], out_of_memory, used=in_use)


def _tensor(match: re.Match[str]) -> Failure:
    """Parse a failure of a TensorFlow operation, which names the tensor."""
    dimensions = [min(int(text), 2**40) for text in match[1].split(",") if text]
    width = BYTES.get(match[2])
    asked = prod(dimensions) * width if width and len(dimensions) < 16 else None
    out_of_memory = OutOfMemory(
        asked=asked if asked is not None and asked < 2**63 else None,
        wanted_by=f"a tensor of shape [{match[1]}] and type {match[2]}",
    )
    return Failure(match.start(), "tensor", match[4].rstrip(",.") if match[4] else "", out_of_memory)
