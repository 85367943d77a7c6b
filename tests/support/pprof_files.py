"""pprof profiles built by hand, and a plain reader for any profile: protobuf's own parser and loops."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from support.servers import DATA

from tb_memplugin.protos.pprof_pb2 import Profile

REAL = sorted((DATA / "pprof").glob("*.prof"))


class Frame(NamedTuple):
    function: str
    file: str = "train.py"
    line: int = 1


@dataclass(frozen=True)
class Sample:
    """A stack, with frames innermost first."""

    stack: Sequence[Frame]
    bytes: int
    count: int = 1
    kind: str = "buffer"
    device: str = "cuda:0"


class Writer:
    """Build a profile as jaxlib writes it: ids from 1, a function for each line where it is used."""

    def __init__(self, types: Sequence[tuple[str, str]] = (("allocations", "count"), ("space", "bytes"))) -> None:
        self.profile = Profile(string_table=[b""])
        self.entries: dict[str, int] = {"": 0}
        self.locations: dict[Frame, int] = {}
        for name, unit in types:
            self.profile.sample_type.add(type=self.text(name), unit=self.text(unit))

    def text(self, text: str) -> int:
        if text not in self.entries:
            self.entries[text] = len(self.profile.string_table)
            self.profile.string_table.append(text.encode("utf-8", "surrogateescape"))
        return self.entries[text]

    def location(self, frame: Frame) -> int:
        if frame not in self.locations:
            number = self.locations[frame] = len(self.locations) + 1
            self.profile.function.add(id=number, name=self.text(frame.function), filename=self.text(frame.file))
            self.profile.location.add(id=number).line.add(function_id=number, line=frame.line)
        return self.locations[frame]

    def add(self, sample: Sample) -> Writer:
        written = self.profile.sample.add(location_id=[self.location(f) for f in sample.stack])
        written.value.extend([sample.count, sample.bytes])
        for key, value in (("kind", sample.kind), ("device", sample.device)):
            if value:
                written.label.add(key=self.text(key), str=self.text(value))
        return self


def profile_of(samples: Sequence[Sample]) -> bytes:
    """Compress a profile, as JAX saves it."""
    writer = Writer()
    for sample in samples:
        writer.add(sample)
    return gzip.compress(writer.profile.SerializeToString(), mtime=0)


def samples_of(data: bytes) -> Iterator[Sample]:
    """Return the contents of a JAX profile, in file order."""
    profile = Profile.FromString(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    text = [entry.decode("utf-8", "replace") for entry in profile.string_table]
    functions = {function.id: function for function in profile.function}
    places = {
        place.id: [
            Frame(text[functions[line.function_id].name], text[functions[line.function_id].filename], line.line)
            for line in place.line
        ]
        for place in profile.location
    }
    for sample in profile.sample:
        labels = {text[label.key]: text[label.str] for label in sample.label}
        stack = [frame for place in sample.location_id for frame in places[place]]
        yield Sample(stack, sample.value[1], sample.value[0], labels.get("kind", ""), labels.get("device", ""))


def write(folder: Path, samples: Sequence[Sample], name: str = "memory.prof") -> Path:
    path = folder / name
    path.write_bytes(profile_of(samples))
    return path
