"""Messages of the TPU runtime about a buffer or program that does not fit.

Error loading program 'jit_step': Attempting to reserve 29.49G at the bottom of memory. That was not possible.
There are 147.64M free, 0B reserved, and 147.64M reservable.
Error allocating device buffer: Attempting to allocate 31.06M. That was not possible. There are 58.64M free.
Due to fragmentation, the largest contiguous region of free memory is 30.56M.; (0x0x0_HBM0)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import Failure, last_matches, size_of
from tb_memplugin.sizes import PRINTED as SIZE

MARKS = ("That was not possible",)
HEAD = re.compile(
    r"(?:Error loading program(?: '(?P<program>[^'\n]{1,300})')?:\s+)?"
    rf"Attempting to (?P<verb>allocate|reserve) (?P<asked>{SIZE})(?: at the bottom of memory)?\.\s+"
    rf"That was not possible\.\s+There are (?P<free>{SIZE}) free"
    rf"(?:,\s+(?P<reserved>{SIZE}) reserved,\s+and (?P<reservable>{SIZE}) reservable)?"
    rf"(?:\.\s+(?:Due to fragmentation, the|The) largest contiguous region of free memory is (?P<largest>{SIZE}))?"
)
DEVICE = re.compile(r"[^\n]{0,200}?\((\d{1,4}x\d{1,4}x\d{1,4}_\w{1,20})\)")


def find(text: str) -> Iterator[Failure]:
    for head in last_matches(HEAD, text):
        device = DEVICE.match(text, head.end())
        reserving = head["verb"] == "reserve"
        loading = reserving or "loading program" in head[0]
        out_of_memory = OutOfMemory(
            asked=size_of(head, "asked"),
            free=size_of(head, "free"),
            # A program is loaded at one end of the memory, so only free bytes at that end count.
            largest_free=size_of(head, "reservable" if reserving else "largest"),
            phase=OutOfMemoryPhase.LOAD if loading else OutOfMemoryPhase.RUN,
            wanted_by=head["program"] or "",
        )
        memory = f"HBM {device[1]}" if device else "HBM"
        yield Failure(head.start(), "tpu", memory, out_of_memory, program=head["program"] or "")
