"""What of a runtime's memory is a compiled program's, and which program runs at a position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.linking.runtime_to_program import link_to_programs, running_programs
from tb_memplugin.model.recording import Recording


def joins(recording: Recording, programs: Sequence[Recording], position: int) -> dict[str, Any]:
    """The answer of api/joins: what executions allocated, and what of it no planned memory was found for.

    `programs` are those that any was joined to, the most bytes first, and those that run at the position: a program of
    several memories once, where nothing was joined to any of them.
    """
    joined = link_to_programs(recording, programs)
    size = recording.allocations.size

    def both(which: npt.NDArray[np.bool_]) -> dict[str, int]:
        return {"allocations": int(which.sum()), "bytes": int(size[which].sum())}

    now = running_programs(recording, programs, position)
    listed = set(np.unique(joined.program[joined.program >= 0]).tolist())
    titles = {programs[number].title for number in listed}
    for number in now:
        if programs[number].title not in titles:
            titles.add(programs[number].title)
            listed.add(number)
    found = [
        {
            "recording": program.id,
            "title": program.title,
            "memory": program.memory,
            "running": number in now,
            **both(joined.program == number),
        }
        for number, program in enumerate(programs)
        if number in listed
    ]
    return {
        "at": position,
        "executable": both(joined.executable),
        "unjoined": both(joined.executable & (joined.program < 0)),
        "programs": sorted(found, key=lambda program: -program["bytes"]),
    }
