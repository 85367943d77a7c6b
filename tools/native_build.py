"""The compiled modules of the package: how Cython translates them, and their types for mypy.

setup.py and the sanitized build of the fuzzer use it. A .pyx is the only place where a signature is written: its .pyi
is derived from it with each build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

# Python's own division would check for zero, annotations are for mypy only, and no compiled class is pickled.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "annotation_typing": False,
    "auto_pickle": False,
}
MACROS: list[tuple[str, str | None]] = [("Py_LIMITED_API", "0x030B0000"), ("CYTHON_LIMITED_API", "1")]

# Names that annotations in a .pyx use without importing them, because nothing evaluates them.
STUB_HEAD = """\
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import F64, I32, I64, U8, U64
from tb_memplugin.model.arrays import Mask as Bools
from tb_memplugin.native.charges import Charges
from tb_memplugin.native.text.spans import Spans

I8 = npt.NDArray[np.int8]
U32 = npt.NDArray[np.uint32]
Buffer = bytes | memoryview
Words = TypeVar("Words", int, U32)
"""
ARRAYS = {
    "double": "F64", "int64_t": "I64", "int32_t": "I32", "int8_t": "I8", "uint64_t": "U64", "uint32_t": "U32",
    "uint8_t": "U8",
}  # fmt: skip
INTEGERS = {"int", "size_t", "Py_ssize_t", "int64_t", "int32_t", "uint64_t", "uint32_t", "uint8_t"}
DECLARATION = re.compile(
    r"^(?P<imported>from tb_memplugin\S+ import [^(\n]+)$"
    r"|^(?:cdef )?(?P<class>class (?P<name>\w+)(?:\(\w+\))?:)$"
    r"|^(?P<constants>[A-Z][A-Z_]*(?:, [A-Z_]+)*)(?:: (?P<type>[^=\n]+))? = "
    r"|^    (?:cdef readonly (?P<kind>\w+) (?P<field>\w+)|(?P<attribute>\w+: \w+))$"
    r"|^(?P<indent>(?:    )?)def (?P<function>\w+)\((?P<parameters>(?:[^()]|\(\))*)\) -> (?P<result>[^\n]+):$",
    re.MULTILINE,
)
TOP_LEVEL_COMMA = re.compile(r",\s*(?![^\[]*\])")


def sources(root: Path) -> list[Path]:
    """Return the sources of the compiled modules."""
    return sorted((root / "tb_memplugin" / "native").rglob("*.pyx"))


def write_stubs(root: Path) -> None:
    """Write a .pyi beside each .pyx."""
    for source in sources(root):
        source.with_suffix(".pyi").write_text(stub(source.read_text(encoding="utf-8")), encoding="utf-8")


def stub(source: str) -> str:
    """Return what Python sees of a .pyx: functions and methods with a return type, classes, attributes and constants.

    Constants without a type are integers. Names of private classes begin with an underscore.
    """
    return STUB_HEAD + "".join(f"{line}\n" for line in _declarations(source))


def _declarations(source: str) -> Iterator[str]:
    in_private = False
    for found in DECLARATION.finditer(source):
        if found["class"] or (found["function"] and not found["indent"]):
            in_private = (found["name"] or "").startswith("_")
        if in_private:
            continue
        if found["imported"]:
            yield found["imported"]
        elif found["class"]:
            yield f"{found['class']}\n    ..."
        elif found["constants"]:
            yield from (f"{name}: Final[{found['type'] or 'int'}]" for name in found["constants"].split(", "))
        elif found["function"]:
            parameters = ", ".join(map(_parameter, TOP_LEVEL_COMMA.split(found["parameters"])))
            yield f"{found['indent']}def {found['function']}({parameters}) -> {found['result']}: ..."
        elif found["attribute"]:
            yield f"    {found['attribute']}"
        else:
            yield f"    {found['field']}: {_type(found['kind'])}"


def _parameter(text: str) -> str:
    """Return a parameter as Python declares it; `const int64_t[::1] start` becomes `start: I64`."""
    if ":" in re.sub(r"\[.*?\]", "", text) or " " not in text:
        return text
    declared, equals, default = text.partition("=")
    kind, name = declared.removeprefix("const ").rsplit(" ", 1)
    return f"{name}: {_type(kind)}{f' = {default}' if equals else ''}"


def _type(kind: str) -> str:
    element, bracket, _ = kind.partition("[")
    if bracket:
        return ARRAYS[element]
    return "int" if kind in INTEGERS else {"bint": "bool"}.get(kind, kind)
