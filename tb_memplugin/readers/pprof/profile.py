"""The columns of a pprof profile, as they are in the file: one row per sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.pprof.samples import samples
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.protobuf.repeated import numbers
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.text.strings import Interner, gather, intern
from tb_memplugin.protos.pprof_pb2 import Profile as ProfileProto
from tb_memplugin.protos.pprof_pb2 import Sample as SampleProto
from tb_memplugin.readers.common.gzip_file import decompress
from tb_memplugin.readers.pprof.stacks import Locations

MAX_BYTES = 1 << 31  # decompress: forty million samples. A few KiB of zeros must not fill the memory
BATCH = 1 << 16  # samples opened at once: a stack is 16 bytes a frame while it is open

OUTLINE = Plan(
    ProfileProto.DESCRIPTOR, skip=("sample.location_id", "sample.value", "sample.label"), located=("sample",)
)
LOCATION_ID = SampleProto.DESCRIPTOR.fields_by_name["location_id"].number
LABELS = "kind", "device"


@dataclass(frozen=True)
class Profile:
    """Samples that have no value of the type wanted are left out and counted in `broken`."""

    count: I64  # allocations that the sample stands for
    bytes: I64  # of them all, as the file says: below 0 where that is not known
    leaf: I32  # innermost frame, -1 none
    kind: Text
    device: Text
    stacks: Stacks
    time_ns: int | None
    comments: tuple[str, ...]
    broken: int
    unknown_frames: int  # places in stacks that name no location or function of the file


def read_profile(data: bytes | memoryview, path: str) -> Profile:
    """InputError where it is no profile, a damaged one, or one of something other than memory."""
    raw = decompress(data, path, MAX_BYTES)
    try:
        tables = scan(raw, OUTLINE)
        strings = _strings(raw, tables["string_table"]["value"])
        types = _Types.of(tables, strings, path)
        locations = Locations.of(tables, strings)
        parts = [*_batches(raw, tables["sample"]["span"], types, locations)]
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    count, size, leaf, kind, device = columns or [np.empty(0, np.int64)] * 5
    samples = len(tables["sample"]["span"].start)
    return Profile(
        count=count,
        bytes=size,
        leaf=leaf.astype(np.int32),
        kind=strings.take(kind),
        device=strings.take(device),
        stacks=locations.stacks(),
        time_ns=int(tables[""]["time_nanos"][0]) or None,
        comments=tuple(strings.take(tables["comment"]["value"])[i] for i in range(len(tables["comment"]["value"]))),
        broken=samples - len(count),
        unknown_frames=locations.unknown,
    )


def _damaged(path: str, why: str) -> InputError:
    return InputError(f"not a pprof profile, or a damaged one ({why})", path, "copy the file again, or save it again")


def _strings(raw: bytes | memoryview, spans: Spans) -> _Strings:
    codes, first = intern(raw, spans.start, spans.length)
    return _Strings(codes, Strings(*gather(raw, spans.start[first], spans.length[first])))


@dataclass(frozen=True)
class _Strings:
    """The string table: entries that read the same are one."""

    codes: I32  # of each entry
    strings: Strings

    def take(self, entries: I64) -> Text:
        """The texts of these entries; what is past the table is empty."""
        inside = (entries >= 0) & (entries < len(self.codes))
        codes = self.codes[np.where(inside, entries, 0)] if len(self.codes) else np.full(len(entries), -1, np.int32)
        return Text(np.where(inside, codes, -1).astype(np.int32), self.strings)

    def code(self, text: str) -> int:
        """What its entries have in `codes`; -2, which none has, where it is not in the table."""
        of_its_length = np.flatnonzero(np.diff(self.strings.offsets) == len(text.encode()))
        return next((i for i in of_its_length.tolist() if self.strings[i] == text), -2)


@dataclass(frozen=True)
class _Types:
    """Which of a sample's values are looked at, and which labels."""

    number: int  # of values that a sample has
    chosen: I64  # which of them counts allocations, -1 none, and which bytes
    entries: I32  # which text each entry of the string table is
    labels: I32  # the texts that are the keys of LABELS

    @staticmethod
    def of(tables: dict[str, dict[str, Any]], strings: _Strings, path: str) -> _Types:
        """The default type, or the last one, as pprof has it, if it is bytes; else the last that is bytes."""
        kinds, units = (strings.take(tables["sample_type"][name]) for name in ("type", "unit"))
        number = len(kinds)
        sizes = [i for i in range(number) if units[i] == "bytes"]
        if not sizes:
            found = ", ".join(f"{kinds[i]} in {units[i]}" for i in range(number)) or "nothing"
            raise InputError(f"a profile of {found}, not of memory", path, "give one that counts bytes")
        default = strings.take(tables[""]["default_sample_type"])[0]
        chosen = next((i for i in sizes if default and kinds[i] == default), sizes[-1])
        counts = [i for i in range(chosen) if units[i] == "count"]
        labels = np.array([strings.code(label) for label in LABELS], dtype=np.int32)
        return _Types(number, np.array([counts[-1] if counts else -1, chosen]), strings.codes, labels)


def _batches(
    raw: bytes | memoryview, spans: Spans, types: _Types, locations: Locations
) -> Iterator[tuple[I64, I64, I32, I64, I64]]:
    """Count, bytes, leaf, and the entries of kind and device (0 where there is none) of each sample."""
    stacks = _Leaves(raw, len(spans.start), locations)
    for begin in range(0, len(spans.start), BATCH):
        batch = Spans(spans.start[begin : begin + BATCH], spans.length[begin : begin + BATCH])
        stack, pieces, told, (count, size), (kind, device) = samples(
            raw, *batch, types.chosen, types.entries, types.labels
        )
        leaf, whole = stacks.of(batch, stack, pieces), told == types.number
        count = count if types.chosen[0] >= 0 else np.ones_like(count)
        yield count[whole], size[whole], leaf[whole], kind[whole], device[whole]


class _Leaves:
    """Of stacks. The same one comes again with other sizes and on other devices: each is opened once."""

    def __init__(self, raw: bytes | memoryview, samples: int, locations: Locations) -> None:
        self.raw, self.locations = raw, locations
        self.seen = Interner(raw)
        self.leaf = np.full(samples + 1, -1, np.int32)  # of each stack that was seen; the last is of none
        self.opened = 0

    def of(self, batch: Spans, stack: Spans, pieces: npt.NDArray[np.bool_]) -> I32:
        """`stack` is where the samples' stacks lie; those in `pieces` lie in no one place, and are opened each."""
        in_pieces = np.flatnonzero(pieces)
        stack.length[in_pieces] = 0
        code, new = self.seen.add(*stack)
        self.leaf[self.opened : self.opened + len(new)] = self._opened(batch.take(new))
        self.opened += len(new)
        leaf: I32 = self.leaf[code]
        leaf[in_pieces] = self._opened(batch.take(in_pieces))
        return leaf

    def _opened(self, samples: Spans) -> I32:
        return self.locations.leaves(*numbers(self.raw, *samples, LOCATION_ID))
