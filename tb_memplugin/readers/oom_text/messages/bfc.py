"""Dumps of TensorFlow's and XLA's BFC allocator, and of ONNX Runtime's copy of it: a map of addresses.

    Allocator (GPU_0_bfc) ran out of memory trying to allocate 32.00MiB (rounded to 33554432)requested by op AddV2
    BFCAllocator dump for GPU_0_bfc
    Next region of size 4194304
    InUse at 7f66319f9040 of size 1048576 next 3 allocation_annotation xla.execute{...} xla.buffer{...}
    Free  at 7f6631bf9040 of size 3145728 next 18446744073709551615
         Summary of in-use Chunks by size:
    Total size in pool: 62.00MiB memory_limit_: 64.00MiB available size: 2.00MiB
    Stats:
    Limit:                        64.00MiB
    ****************************_______****xx

Chunk addresses come with or without 0x, before or after `next`; old versions list free chunks last.

Annotations (openxla/xla#44246) name the program and the buffer of a chunk:

    xla.execute{executable=jit_step, device=0} xla.buffer{kind=live_out, allocation_index=3}
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import U8
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.tables import ProgramChunks
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder
from tb_memplugin.readers.oom_text.failure import MAX_TOTAL_BYTES, Failure, Rows, no_rows, size_of
from tb_memplugin.readers.oom_text.message import FoundMessage, MessageKind
from tb_memplugin.sizes import PRINTED as SIZE
from tb_memplugin.sizes import percent_text

FRAME = re.compile(r"\bxla\.(execute|buffer)\{([^}\n]{0,600})\}")
ARGUMENT = re.compile(r"(\w{1,40})=([^,}\n]{1,300})")
ROLES = (
    ("param", Role.PARAMETER), ("live_out", Role.OUTPUT), ("output", Role.OUTPUT), ("constant", Role.CONSTANT),
    ("temp", Role.TEMPORARY), ("thread_local", Role.THREAD_LOCAL),
)  # fmt: skip


class Annotations(NamedTuple):
    """One entry per chunk; empty texts and -1 where it has no annotation."""

    program: list[str]
    kind: list[str]
    allocation: list[int]

    def names(self, default: str) -> Text:
        """Return the names of the chunks; `default` for those without annotation."""
        return Text.of([_chunk_name(*chunk) or default for chunk in zip(*self, strict=True)])

    def roles(self) -> U8:
        roles = [next((role for word, role in ROLES if word in kind), Role.UNKNOWN) for kind in self.kind]
        return np.array(roles, dtype=np.uint8)

    def program_chunks(self) -> ProgramChunks | None:
        if not any(self.program):
            return None
        return ProgramChunks(Text.of(self.program), np.array(self.allocation, dtype=np.int64))


def read_annotations(texts: Sequence[str]) -> Annotations:
    """Parse the annotation of each chunk. Of nested executions and buffers the innermost counts."""
    found = Annotations([], [], [])
    for text in texts:
        arguments = {name: dict(ARGUMENT.findall(content)) for name, content in FRAME.findall(text)}
        buffer = arguments.get("buffer", {})
        index = buffer.get("allocation_index", "").strip()
        found.program.append(arguments.get("execute", {}).get("executable", "").strip())
        found.kind.append(buffer.get("kind", "").strip())
        found.allocation.append(int(index) if index.isdecimal() and len(index) < 10 else -1)
    return found


def _chunk_name(program: str, kind: str, allocation: int) -> str:
    number = f"allocation {allocation}" if allocation >= 0 else ""
    return f"{program}: {' '.join(filter(None, (kind, number))) or 'chunk'}" if program else ""


DUMP = re.compile(r"BFC(?:Allocator|Arena) dump for ")
CHUNK = re.compile(
    r"(?m)^(?:(Next region of size )\d{1,18}"
    r"|(InUse|Free|Chunk) {1,3}at (?:0x)?([0-9a-f]{1,15})(?: next -?\d{1,20})? of size (\d{1,15})(?!\d|\Z)"
    r"(?: by op (\S{1,300}))?(?:[^\n]{0,400}? allocation_annotation ([^\n]{1,1000}))?)"
)
SUMMARY = re.compile(r"Summary of in-use [Cc]hunks by size")
STAT = r"(?m)^{}:?\s+(\d{{1,18}}(?:\.\d{{1,6}})?\s?(?:[KMGTPE]i?B?|B)?)\b"
LIMIT, IN_USE, MAX_IN_USE, LARGEST = (
    re.compile(STAT.format(name)) for name in ("Limit", "InUse", "MaxInUse", "LargestFreeBlock")
)
AVAILABLE = re.compile(rf"available (?:bytes|size): ({SIZE}|\d{{1,18}})")
BARE_CHARS = 4000
FULL = 0.95  # a choice: with less of it in use, the free memory may be fragmented
OCCUPANCY = re.compile(r"(?m)^[*_x]{50,200}$")


def _of_allocator(failure: Failure, found: FoundMessage) -> Failure:
    """Add the dump that follows a failed request. Without one, a message has a few lines, and others are unrelated."""
    dump = DUMP.search(found.block)
    block = _up_to_next_dump(found.block, dump.end()) if dump else found.block[:BARE_CHARS]
    asked = found.figure("rounded") or failure.out_of_memory.asked
    return _with_dump(failure.saying(asked=asked), block, found)


def _without_request(failure: Failure, found: FoundMessage) -> Failure:
    """Read a dump whose failed request is not in the text."""
    return _with_dump(failure, _up_to_next_dump(found.block, 1), found)


def _up_to_next_dump(block: str, at: int) -> str:
    following = DUMP.search(block, at)
    return block[: following.start()] if following else block


def _with_dump(failure: Failure, block: str, found: FoundMessage) -> Failure:
    rows, holes = _chunks(block)
    in_use = rows.bytes if len(rows.allocations) else size_of(IN_USE.search(block))
    has_dump = len(rows.regions) > 0
    free_sizes = [*holes, size_of(AVAILABLE.search(block)) or 0]
    failure = failure.saying(
        free=sum(free_sizes) if has_dump else None,
        largest_free=max(free_sizes) if has_dump else (size_of(LARGEST.search(block)) or None),
        capacity=size_of(LIMIT.search(block)),
        in_use=in_use,
    )
    return replace(
        failure, rows=rows, used=in_use,
        lifetime_peak=size_of(MAX_IN_USE.search(block)),
        cut=has_dump and not SUMMARY.search(block),
        caveats=() if has_dump else _occupancy(block, found),
    )  # fmt: skip


def _chunks(block: str) -> tuple[Rows, list[int]]:
    """Return used chunks as rows, with segments of adjacent addresses, and the sizes of the holes between them."""
    found = CHUNK.findall(block)
    heading = np.array([bool(chunk[0]) for chunk in found], dtype=bool)
    begins = np.r_[False, heading[:-1]][~heading] if len(heading) else heading
    chunks = [chunk for chunk in found if chunk[1]]
    address = np.array([int(chunk[2], 16) for chunk in chunks], dtype=np.int64)
    size = np.array([int(chunk[3]) for chunk in chunks], dtype=np.int64)
    used = np.array([chunk[1] != "Free" for chunk in chunks], dtype=bool)
    if not len(address) or size.sum(dtype=np.float64) > MAX_TOTAL_BYTES:
        return no_rows(), []
    order = np.argsort(address, kind="stable")
    address, size, used, first = address[order], size[order], used[order], begins[order]
    first[0] = True
    first[1:] |= address[1:] != address[:-1] + size[:-1]
    region = np.cumsum(first) - 1
    base = address[first]
    live = np.flatnonzero(used)
    listed = [chunks[i] for i in order[live].tolist()]
    annotated = read_annotations([chunk[5] for chunk in listed])
    allocations = table_builder.allocations(
        size[live],
        id=address[live],
        name=annotated.names("chunk"),
        op=Text.of([chunk[4] for chunk in listed]),
        role=annotated.roles(),
        region=region[live].astype(np.int32),
        offset=address[live] - base[region[live]],
    )
    segment_size = np.bincount(region, size, len(base)).astype(np.int64)
    # Adjacent free chunks are one hole, even where the allocator has not merged them yet.
    run = np.cumsum(used | first | np.r_[True, used[:-1]])[~used]
    holes = np.bincount(run, size[~used]).astype(np.int64)
    regions, stacks = table_builder.segments(base, segment_size), table_builder.no_stacks()
    return Rows(allocations, regions, stacks, annotated.program_chunks()), holes[holes > 0].tolist()


def _occupancy(block: str, found: FoundMessage) -> tuple[Caveat, ...]:
    """Return a caveat with the share of memory in use, from the allocator's line of stars."""
    line = OCCUPANCY.search(block)
    if not line:
        return ()
    part = line[0].count("*") / len(line[0])
    if part >= FULL:
        found.values["occupancy"] = percent_text(part)
    return (
        Caveat(
            CaveatCode.OCCUPANCY,
            f"The allocator's occupancy line shows about {percent_text(part)} of its memory in use",
        ),
    )


REQUEST = "ran out of memory trying to allocate"

MESSAGES = (
    # Other lines of this kind report attempts that may fail without an error.
    MessageKind(
        rf"Allocator \((?P<allocator>[^)\n]{{1,100}})\) {REQUEST} {{asked}}(?!i?B? with freed_by_count)\.?"
        r"(?: ?\(rounded to {rounded#}\))?",
        "Allocator (GPU_1_bfc) ran out of memory trying to allocate 4.50GiB (rounded to 4831838208)requested by op \n"
        "2025-03-14 21:29:02.888121: W external/xla/xla/tsl/framework/bfc_allocator.cc:512] " + "*" * 99 + "_",
        {"memory": "GPU_1_bfc", "asked": 4_831_838_208}, "bfc", "{allocator}",
        facts=(r"\A[^\n]{0,60}?requested by op(?P<wanted_by>[^\n]{0,300})",), finish=_of_allocator,
        reason=("Too much memory is in use: about {occupancy}, as the allocator's occupancy line shows.",),
    ),
    MessageKind(
        r"BFC(?:Allocator|Arena) dump for (?P<allocator>\S{1,100})",
        "BFCAllocator dump for GPU_0_bfc\nNext region of size 4096\nInUse at 7f00 of size 1024 next 1\nFree  at 8300 "
        "of size 3072 next 2\n     Summary of in-use Chunks by size: \n",
        {"memory": "GPU_0_bfc", "free": 3072, "in_use": 1024},
        "bfc", "{allocator}", exact=True, unless=REQUEST, finish=_without_request,
    ),
    MessageKind(
        r"(?m)\A(?=(?:(?!BFC|^Bin)[\s\S]){0,4000}?^(?:Bin \(256\):|"
        r"(?:InUse|Free|Chunk) {1,3}at (?:0x)?[0-9a-f]{1,15} ))",
        "InUse at 7f00 of size 1024 next 1\nFree  at 8300 of size 3072 next 2\n",
        {"memory": "BFC", "free": 3072, "in_use": 1024}, "bfc", "BFC", exact=True, unless=REQUEST,
        finish=_without_request,
    ),
)  # fmt: skip
