"""MLIR bytecode: the attributes and types of a module, without its operations.

The format: https://mlir.llvm.org/docs/BytecodeFormat/. Attributes refer to each other by number and are decoded one by
one, so damaged files cannot make the reader recurse.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.readers.common.budget import PYTHON, ReadBudget

MAGIC = b"ML\xefR"
STRINGS, DIALECTS, ATTRIBUTES, OFFSETS = 0, 1, 2, 3  # sections
VERSIONED_DIALECTS = 1  # the first version of the format in which dialects have versions
MAX_NUMBERS = 1 << 10  # in one list
MAX_TEXT = 1 << 8  # bytes of a memory space or an element type; real ones have fewer than 40
ENTRY_BYTES = 512  # of an attribute, a type or a string while they are read; measured: 400
# Codes of the builtin dialect (mlir/IR/BuiltinDialectBytecode.td).
ARRAY, DICTIONARY, STRING, TYPE, INTEGER, DENSE_ARRAY = 0, 1, 2, 6, 8, 17
INTEGER_TYPE, INDEX_TYPE, FUNCTION_TYPE, MEMREF, MEMREF_IN_SPACE = 0, 1, 2, 10, 11
FLOATS = {3: "bf16", 4: "f16", 5: "f32", 6: "f64"}


class Bytes:
    """A reader of numbers. Reading past the end is a ValueError."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError("truncated bytecode")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self) -> int:
        """Read a number. The lowest set bit of its first byte gives its length."""
        first = self.take(1)[0]
        if first == 0:
            return int.from_bytes(self.take(8), "little")
        further = (first & -first).bit_length() - 1
        return int.from_bytes(bytes([first]) + self.take(further), "little") >> (further + 1)

    def signed(self) -> int:
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def numbers(self) -> list[int]:
        count = self.number()
        if count > MAX_NUMBERS:
            raise ValueError("implausible bytecode")
        return [self.number() for _ in range(count)]

    def text(self) -> str:
        end = self.data.find(b"\0", self.at, self.at + MAX_TEXT)
        if end < 0 and len(self.data) - self.at > MAX_TEXT:
            raise ValueError("implausible bytecode")
        return self.take((end if end >= 0 else len(self.data)) - self.at).decode("utf-8", "replace")


class MemRef(NamedTuple):
    """A type of memory: its shape, element type and memory space."""

    shape: tuple[int, ...]
    element: str
    space: str


class EncodedEntry(NamedTuple):
    """An attribute or type; text where `code` is None."""

    code: int | None
    encoded: bytes

    @property
    def content(self) -> Bytes:
        return Bytes(self.encoded)


class Bytecode:
    """The attributes and types of a module, by number. ValueError for bytes that are damaged or no bytecode."""

    def __init__(self, data: bytes, budget: ReadBudget) -> None:
        """`budget`: of the program's file; its error where the bytes take too much."""
        budget.work(PYTHON * len(data))
        found = Bytes(data)
        if found.take(4) != MAGIC:
            raise ValueError("no MLIR bytecode")
        self._version = found.number()
        found.text()
        found.take(1)
        sections = dict(_sections(found))
        # Each entry has a byte or more in one of these sections. They are freed before the next kernel is read.
        budget.check(ENTRY_BYTES * (len(sections.get(OFFSETS, b"")) + _count(sections.get(STRINGS, b""))))
        self.strings = _strings(sections[STRINGS]) if STRINGS in sections else []
        self._builtin = self._builtin_dialect(sections.get(DIALECTS, b""))
        self._content = sections.get(ATTRIBUTES, b"")
        self.attributes, self.types = self._entries(Bytes(sections.get(OFFSETS, b"")))

    def _builtin_dialect(self, section: bytes) -> int:
        found = Bytes(section)
        for dialect in range(found.number()):
            name = found.number()
            if self._version >= VERSIONED_DIALECTS:
                name, has_version = name >> 1, name & 1
                if has_version:
                    next(_sections(found), None)
            if self.strings[name] == "builtin":
                return dialect
        return -1

    def _entries(self, found: Bytes) -> tuple[list[EncodedEntry], list[EncodedEntry]]:
        counts = found.number(), found.number()
        entries: list[list[EncodedEntry]] = []
        at = 0
        for count in counts:
            group: list[EncodedEntry] = []
            while len(group) < count:
                dialect, many = found.number(), found.number()
                for _ in range(many):
                    size = found.number()
                    content = Bytes(self._content[at : at + (size >> 1)])
                    at += size >> 1
                    code = content.number() if size & 1 and dialect == self._builtin else None
                    group.append(EncodedEntry(code, content.data[content.at :]))
            entries.append(group)
        return entries[0], entries[1]

    def dictionaries(self) -> Iterator[dict[str, int]]:
        """Yield each dictionary: attribute numbers by name."""
        for number, entry in enumerate(self.attributes):
            if entry.code == DICTIONARY:
                yield self.dictionary(number)

    def dictionary(self, attribute: int) -> dict[str, int]:
        """Return a dictionary: attribute numbers by name."""
        entry = self.attributes[attribute]
        if entry.code != DICTIONARY:
            return {}
        content = entry.content
        pairs = content.number()
        return {self._string(content.number()): content.number() for _ in range(min(pairs, MAX_NUMBERS))}

    def _string(self, attribute: int) -> str:
        entry = self.attributes[attribute]
        return self.strings[entry.content.number()] if entry.code == STRING else ""

    def array(self, attribute: int) -> list[int]:
        """Return the numbers of an array's attributes."""
        entry = self.attributes[attribute]
        return entry.content.numbers() if entry.code == ARRAY else []

    def integer(self, attribute: int) -> int:
        """Return an integer of at most 64 bits."""
        value = self._content_of(attribute, INTEGER)
        value.number()  # its type
        return value.signed()

    def dense_integers(self, attribute: int) -> I64:
        """Return an array of 64-bit integers."""
        value = self._content_of(attribute, DENSE_ARRAY)
        value.number()  # its type
        count = value.number()
        data = value.take(value.number())
        if len(data) != 8 * count:
            raise ValueError("no array of 64-bit integers")
        return np.frombuffer(data, dtype="<i8")

    def text(self, attribute: int) -> str:
        """Return the text of an attribute of another dialect; empty for one of the builtin dialect."""
        entry = self.attributes[attribute]
        return entry.content.text() if entry.code is None else ""

    def type_of(self, attribute: int) -> int:
        """Return the number of the type that an attribute holds."""
        return self._content_of(attribute, TYPE).number()

    def _content_of(self, attribute: int, code: int) -> Bytes:
        entry = self.attributes[attribute]
        if entry.code != code:
            raise ValueError("an attribute of another kind")
        return entry.content

    def inputs(self, function: int) -> list[int]:
        """Return the numbers of a function type's inputs."""
        entry = self.types[function]
        return entry.content.numbers() if entry.code == FUNCTION_TYPE else []

    def memref(self, number: int) -> MemRef | None:
        """Return a type of memory; None for another type."""
        entry = self.types[number]
        code, value = entry.code, entry.content
        if code not in (MEMREF, MEMREF_IN_SPACE):
            return None
        space = self.text(value.number()) if code == MEMREF_IN_SPACE else ""
        shape = tuple(size >> 1 ^ -(size & 1) for size in value.numbers())
        return MemRef(shape, self._element(value.number()), space)

    def _element(self, number: int) -> str:
        entry = self.types[number]
        code, value = entry.code, entry.content
        if code is None:
            return value.text()
        if code == INTEGER_TYPE:
            width, kind = divmod(value.number(), 4)
            return "pred" if width == 1 else f"{'su'[kind == 2]}{width}"
        return "s32" if code == INDEX_TYPE else FLOATS.get(code, "")


def _sections(found: Bytes) -> Iterator[tuple[int, bytes]]:
    while found.at < len(found.data):
        kind, size = found.take(1)[0], found.number()
        if kind & 0x80:
            alignment = found.number()
            if not 0 < alignment <= 1 << 12:
                raise ValueError("implausible bytecode")
            found.take(-found.at % alignment)
        yield kind & 0x7F, found.take(size)


def _count(section: bytes) -> int:
    """Return the number of strings, at most the bytes of the section."""
    return min(Bytes(section).number(), len(section)) if section else 0


def _strings(section: bytes) -> list[str]:
    """Return the strings; the section has their sizes from the last to the first, then their bytes."""
    found, end, strings = Bytes(section), len(section), []
    for _ in range(found.number()):
        size = found.number()
        if not 0 < size <= end:
            raise ValueError("damaged strings")
        strings.append(section[end - size : end - 1].decode("utf-8", "replace"))
        end -= size
    return strings[::-1]
