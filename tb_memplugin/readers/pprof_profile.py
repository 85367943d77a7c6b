"""Columns of a pprof profile, with one row per sample, and the tree of frames of its samples' stacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.graph.stack_tree import Chains
from tb_memplugin.native.pprof.samples import samples
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.protobuf.repeated import numbers
from tb_memplugin.native.row_groups import group_rows
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.text.strings import Interner, gather, intern
from tb_memplugin.protos.pprof_fields import Profile as ProfileProto
from tb_memplugin.protos.pprof_fields import Sample as SampleProto
from tb_memplugin.readers.common.budget import ReadBudget, at_once, decompress
from tb_memplugin.readers.common.rows import IdIndex

MAX_LINE = 2**31 - 1


@dataclass
class Locations:
    """Locations by id, and the stacks added so far."""

    index: IdIndex
    function: Text  # of each distinct frame
    file: Text
    line: I32
    chains: Chains
    missing_location: int  # stands for ids without a location
    budget: ReadBudget
    unknown: int = 0  # number of stack entries with such an id

    @staticmethod
    def of(tables: dict[str, dict[str, Any]], strings: _Strings, budget: ReadBudget) -> Locations:
        functions, lines = tables["function"], tables["location.line"]
        locations = len(tables["location"]["id"])
        # One extra row each stands for locations without lines and for functions that the file lacks.
        function_row = IdIndex(functions["id"]).rows(lines["function_id"])
        function_row = np.where(function_row < 0, len(functions["id"]), function_row)
        line_count = np.bincount(lines["parent"], minlength=locations + 1)
        without_lines = np.flatnonzero(line_count == 0)  # the last one stands for ids without a location
        owner = np.r_[lines["parent"], without_lines]
        order = np.argsort(owner, kind="stable")
        name = strings.take(np.r_[functions["name"], -1])
        file = strings.take(np.r_[functions["filename"], -1])
        code = np.r_[function_row, np.full(len(without_lines), len(functions["id"]))][order]
        number = np.r_[np.clip(lines["line"], 0, MAX_LINE), np.zeros(len(without_lines), np.int64)][order]
        # JAX writes a function per code object, so the same line may occur under several ids.
        frame, first = group_rows([name.codes[code], file.codes[code], number])
        return Locations(
            index=IdIndex(tables["location"]["id"]),
            function=name.take(code[first]),
            file=file.take(code[first]),
            line=number[first].astype(np.int32),
            chains=Chains(np.r_[0, np.cumsum(np.maximum(line_count, 1))], frame.astype(np.int32), budget),
            missing_location=locations,
            budget=budget,
        )

    def leaves(self, length: I64, ids: I64) -> I32:
        """Return the leaf frame of each stack, -1 for an empty one. `ids`: all stacks' locations, innermost first."""
        location = self.index.rows(ids)
        missing = location < 0
        self.unknown += int(missing.sum())
        location[missing] = self.missing_location
        return self.chains.add(length, location)

    def stacks(self) -> Stacks:
        """Return the tree of all stacks added so far."""
        parent, frame = self.chains.tree()
        return Stacks(parent, self.function.take(frame), self.file.take(frame), self.line[frame])


SAMPLE_BYTES = 250  # of the columns of a sample, here and in recordings
MAX_COMMENTS, MAX_NAMED, MAX_NAME = 100, 5, 100
BATCH = 1 << 16  # samples parsed at once, as a parsed stack takes 16 bytes per frame

OUTLINE = Plan(ProfileProto, skip=("sample.location_id", "sample.value", "sample.label"), located=("sample",))
LOCATION_ID = SampleProto.number("location_id")
LABELS = "kind", "device"


@dataclass(frozen=True)
class Profile:
    """Samples with a value of the chosen type; `broken` is the number of those without."""

    count: I64  # allocations that the sample stands for
    bytes: I64  # of all these allocations, as in the file; negative where unknown
    leaf: I32  # innermost frame, -1 none
    kind: Text
    device: Text
    stacks: Stacks
    time_ns: int | None
    comments: tuple[str, ...]
    broken: int
    unknown_frames: int  # stack entries without a location or function in the file


def read_profile(data: bytes | memoryview, path: str) -> Profile:
    """Parse a profile. Raises InputError where it is no profile, is damaged, or has no type in bytes."""
    budget = ReadBudget(data, path)
    raw = decompress(data, budget)
    try:
        tables = scan(raw, OUTLINE, budget=budget)
        budget.charge(SAMPLE_BYTES * len(tables["sample"]["span"].start))
        strings = _strings(raw, tables["string_table"]["value"])
        types = _SampleTypes.of(tables, strings, path)
        locations = Locations.of(tables, strings, budget)
        parts = [*_batches(raw, tables["sample"]["span"], types, locations)]
    except ValueError as error:
        problem = f"not a pprof profile, or damaged ({error})"
        raise InputError(problem, path, "copy the file again, or save it again") from error
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    count, size, leaf, kind, device = columns or [np.empty(0, np.int64)] * 5
    samples = len(tables["sample"]["span"].start)
    # A file with more than a few comments is damaged, so only the first ones are read.
    comments = list(dict.fromkeys(tables["comment"]["value"][:MAX_COMMENTS].tolist()))
    return Profile(
        count=count,
        bytes=size,
        leaf=leaf.astype(np.int32),
        kind=strings.take(kind),
        device=strings.take(device),
        stacks=locations.stacks(),
        time_ns=int(tables[""]["time_nanos"][0]) or None,
        comments=tuple(strings.take(np.array(comments, dtype=np.int64)).tolist()),
        broken=samples - len(count),
        unknown_frames=locations.unknown,
    )


def _strings(raw: bytes | memoryview, spans: Spans) -> _Strings:
    codes, first = intern(raw, spans.start, spans.length)
    return _Strings(codes, Strings(*gather(raw, spans.start[first], spans.length[first])))


@dataclass(frozen=True)
class _Strings:
    """The string table, with equal entries merged."""

    codes: I32  # of each entry
    strings: Strings

    def take(self, entries: I64) -> Text:
        """Return the texts of these entries, empty outside the table."""
        inside = (entries >= 0) & (entries < len(self.codes))
        codes = self.codes[np.where(inside, entries, 0)] if len(self.codes) else np.full(len(entries), -1, np.int32)
        return Text(np.where(inside, codes, -1).astype(np.int32), self.strings)

    def code(self, text: str) -> int:
        """Return the text's code in `codes`; -2, which matches none, where the table lacks it."""
        same_length = np.flatnonzero(np.diff(self.strings.offsets) == len(text.encode()))
        return next((i for i in same_length.tolist() if self.strings[i] == text), -2)


@dataclass(frozen=True)
class _SampleTypes:
    """The chosen values and labels of samples."""

    number: int  # of values per sample
    chosen: I64  # index of the value that counts allocations (-1 none), and of the one in bytes
    entries: I32  # text code of each entry of the string table
    labels: I32  # text codes of LABELS

    @staticmethod
    def of(tables: dict[str, dict[str, Any]], strings: _Strings, path: str) -> _SampleTypes:
        """Choose the default type if it is in bytes, else the last type in bytes. InputError if none is."""
        kinds, units = (strings.take(tables["sample_type"][name]) for name in ("type", "unit"))
        number = len(kinds)
        sizes = [i for i in range(number) if units[i] == "bytes"]
        if not sizes:
            named = range(min(number, MAX_NAMED))
            found = ", ".join(f"{kinds[i][:MAX_NAME]} in {units[i][:MAX_NAME]}" for i in named) or "nothing"
            raise InputError(f"a profile of {found}, not of memory", path, "pass a profile with a type in bytes")
        default = strings.take(tables[""]["default_sample_type"])[0]
        chosen = next((i for i in sizes if default and kinds[i] == default), sizes[-1])
        counts = [i for i in range(chosen) if units[i] == "count"]
        labels = np.array([strings.code(label) for label in LABELS], dtype=np.int32)
        return _SampleTypes(number, np.array([counts[-1] if counts else -1, chosen]), strings.codes, labels)


def _batches(
    raw: bytes | memoryview, spans: Spans, types: _SampleTypes, locations: Locations
) -> Iterator[tuple[I64, I64, I32, I64, I64]]:
    """Yield count, bytes, leaf, and the string-table entries of kind and device (0 none) per sample, in batches.

    Another thread parses the next batch, while the stacks of one are looked up.
    """
    stacks = _StackCache(raw, len(spans.start), locations)
    parse = partial(samples, raw, chosen=types.chosen, entry=types.entries, key=types.labels)
    begins = range(0, len(spans.start), BATCH)
    batches = [Spans(spans.start[begin : begin + BATCH], spans.length[begin : begin + BATCH]) for begin in begins]
    if not batches:
        return
    parsed = parse(*batches[0])
    for batch, following in zip_longest(batches, batches[1:]):
        stack, split, value_count, (count, size), (kind, device) = parsed
        find = partial(stacks.leaves, batch, stack, split)
        leaf, parsed = at_once(find, partial(parse, *following)) if following else (find(), parsed)
        complete = value_count == types.number
        count = count if types.chosen[0] >= 0 else np.ones_like(count)
        yield count[complete], size[complete], leaf[complete], kind[complete], device[complete]


class _StackCache:
    """Leaf frames of stacks. Many samples share a stack, with other sizes or devices, so each is parsed once."""

    def __init__(self, raw: bytes | memoryview, samples: int, locations: Locations) -> None:
        self.raw, self.locations = raw, locations
        self.seen = Interner(raw)
        self.leaf = np.full(samples + 1, -1, np.int32)  # per distinct stack; the last entry is for no stack
        self.parsed = 0

    def leaves(self, batch: Spans, stack: Spans, split: npt.NDArray[np.bool_]) -> I32:
        """Return the leaf of each sample. `stack`: the bytes of its stack; a `split` one is not contiguous."""
        split_rows = np.flatnonzero(split)
        stack.length[split_rows] = 0
        code, new = self.seen.add(*stack)
        self.leaf[self.parsed : self.parsed + len(new)] = self._parse(batch.take(new))
        self.parsed += len(new)
        leaf: I32 = self.leaf[code]
        leaf[split_rows] = self._parse(batch.take(split_rows))
        return leaf

    def _parse(self, samples: Spans) -> I32:
        return self.locations.leaves(*numbers(self.raw, *samples, LOCATION_ID, self.locations.budget))
