"""The generated fields of messages, compared with the .proto files' own modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.generate_fields import FOLDER, fields_module

NAMES = sorted(path.stem for path in Path(FOLDER).glob("*.proto"))


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_file_is_up_to_date(name: str) -> None:
    assert (FOLDER / f"{name}_fields.py").read_text() == fields_module(name), "run `make protos`"


def test_nothing_else_is_generated() -> None:
    assert {path.name for path in FOLDER.glob("*_fields.py")} == {f"{name}_fields.py" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_protobuf_modules_need_what_pyproject_requires(name: str) -> None:
    """Protobuf 6 warns at every command of modules that protobuf 5 generated, and any version refuses newer ones."""
    required = re.search(r'"protobuf>=([\d.]+),', Path("pyproject.toml").read_text())
    generated = re.search(r"# Protobuf Python Version: ([\d.]+)", (FOLDER / f"{name}_pb2.py").read_text())
    assert required and generated and required[1] == generated[1]
