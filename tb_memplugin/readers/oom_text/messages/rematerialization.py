"""What XLA says when it could not recompute enough: a warning, and the reason of the failure after it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import Failure, last
from tb_memplugin.sizes import PRINTED as SIZE

MARKS = ("by rematerialization",)
LINE = re.compile(
    rf"Can't reduce memory use below {SIZE} \((-?\d{{1,18}}) bytes\) by rematerialization; "
    rf"only reduced to {SIZE} \((\d{{1,18}}) bytes\)(?:, down from {SIZE} \((\d{{1,18}}) bytes\))?"
)


def find(text: str) -> Iterator[Failure]:
    for match in last(LINE, text):
        limit, needed = int(match[1]), int(match[2])
        saved = int(match[3]) - needed if match[3] else None
        told = Caveat(
            CaveatCode.REMATERIALIZED,
            "The compiler recomputed what it could to save memory, the bytes told here, and still missed its limit",
            saved,
        )
        # Below zero: arguments and outputs alone are more than the limit.
        out_of_memory = OutOfMemory(asked=needed, capacity=max(limit, 0), phase=OutOfMemoryPhase.COMPILE)
        yield Failure(match.start(), "remat", "", out_of_memory, used=needed, caveats=(told,))
