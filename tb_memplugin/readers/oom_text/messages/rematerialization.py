"""XLA's warning that rematerialization did not reduce memory enough, which precedes the failure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import Failure, last_matches
from tb_memplugin.sizes import PRINTED as SIZE

MARKS = ("by rematerialization",)
LINE = re.compile(
    rf"Can't reduce memory use below {SIZE} \((-?\d{{1,18}}) bytes\) by rematerialization; "
    rf"only reduced to {SIZE} \((\d{{1,18}}) bytes\)(?:, down from {SIZE} \((\d{{1,18}}) bytes\))?"
)


def find(text: str) -> Iterator[Failure]:
    for match in last_matches(LINE, text):
        limit, needed = int(match[1]), int(match[2])
        saved = int(match[3]) - needed if match[3] else None
        caveat = Caveat(
            CaveatCode.REMATERIALIZED,
            "Rematerialization saved these bytes, but the program still exceeds its limit",
            saved,
        )
        # A negative limit means that arguments and outputs alone exceed it.
        out_of_memory = OutOfMemory(asked=needed, capacity=max(limit, 0), phase=OutOfMemoryPhase.COMPILE)
        yield Failure(match.start(), "remat", "", out_of_memory, used=needed, caveats=(caveat,))
