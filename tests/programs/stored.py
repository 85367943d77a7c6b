"""Stored dumps of the corpus: XLA's proto, its own report, and the truth about the arguments.

    python -m programs.stored [NAME ...]

prints a line for each dump: what XLA reserves in each memory space, and the most live bytes there; argument bytes with
a wrong role; arguments whose number of copies is wrong. A star marks what is wrong.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from programs.argument_roles import Argument, scored_arguments, share_wrong

from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.hlo import read_hlo

FOLDER = Path(__file__).parents[1] / "data" / "programs"


@dataclass(frozen=True)
class Space:
    """A memory space of a compiled program, as we read it: bytes reserved, and the most live ones."""

    memory: str
    reserved: int
    live: int


@dataclass(frozen=True)
class Stored:
    """A program that was compiled for a target, and stored by `programs.store`."""

    name: str
    target: str

    @property
    def proto(self) -> bytes:
        return gzip.decompress((FOLDER / f"{self}.hlo.pb.gz").read_bytes())

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Return what `programs.store` wrote: reserved, live_range_peak, changes, chip and arguments."""
        return json.loads((FOLDER / f"{self}.json").read_text())  # type: ignore[no-any-return]

    @property
    def reserved(self) -> dict[int, int]:
        """Return the bytes that XLA reports for each memory space that it uses."""
        return {int(color): size for color, size in self.facts["reserved"].items() if size}

    @cached_property
    def recordings(self) -> list[Recording]:
        return read_hlo(self.proto, source=str(self))

    def spaces(self) -> dict[int, Space]:
        """Return the memory spaces that we read, by XLA's number of each; XLA counts thread-local memory as well."""
        return {
            r.program.memory_space: Space(r.memory, int(r.regions.size.sum()), peak(r).bytes)
            for r in self.recordings
            if r.program is not None
        }

    def arguments(self) -> list[Argument]:
        """Return the arguments, with their true roles and those that we show."""
        return scored_arguments(self.recordings, self.facts)

    def copies(self) -> Iterator[tuple[str, int, int]]:
        """Yield the path of each argument, on how many devices each part of it is in truth, and as we read it."""
        leaves = self.facts["arguments"]
        program = next(r.program for r in self.recordings if r.program is not None)
        if program.shardings is None:
            yield from ((leaf["path"], leaf["replicas"], 1) for leaf in leaves)
        elif len(program.shardings.copies) == len(leaves):  # JAX drops arguments that nothing uses
            for leaf, copies in zip(leaves, program.shardings.copies.tolist(), strict=True):
                yield leaf["path"], leaf["replicas"], copies

    def __str__(self) -> str:
        return f"{self.name}.{self.target}"


def stored_programs() -> list[Stored]:
    return [Stored(*path.name.split(".")[:2]) for path in sorted(FOLDER.glob("*.hlo.pb.gz"))]


def describe(stored: Stored) -> str:
    """Return a line about a dump."""
    words = [f"{stored!s:36}"]
    for color, space in stored.spaces().items():
        if color in (0, 1, 3, 5):
            right = space.reserved == stored.reserved.get(color, 0) and space.live <= space.reserved
            words.append(
                f"{space.memory} {space.live / 2**20:.1f} of {space.reserved / 2**20:.1f} MiB{' *'[not right]}"
            )
    wrong, copies = share_wrong(stored.arguments()), list(stored.copies())
    words.append(f"roles {wrong:.1f} % wrong{' *' if wrong > 1 else ''}")
    words.append(f"copies {sum(truth != shown for _, truth, shown in copies)} of {len(copies)} wrong")
    return "  ".join(words)


def main(*names: str) -> None:
    for stored in stored_programs():
        if not names or stored.name in names:
            print(describe(stored), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
