"""Dataclasses of tb_memplugin/dataclass.py, compared with the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from tb_memplugin import dataclass as light

OPTIONS = [
    {"frozen": frozen, "slots": slots, "eq": eq}
    for frozen in (True, False)
    for slots in (True, False)
    for eq in (True, False)
]
STANDARD, LIGHT = dataclasses.dataclass, light.dataclass


def classes(options: dict[str, bool]) -> list[Any]:
    """Return the same class, made by the standard library and by ours."""
    return [_made(make, options) for make in (STANDARD, LIGHT)]


def _made(make: Any, options: dict[str, bool]) -> Any:
    @make(**options)
    class Row:
        """A row."""

        size: int
        name: str = "?"
        tags: list[str] = dataclasses.field(default_factory=list)

        def __post_init__(self) -> None:
            object.__setattr__(self, "name", self.name.upper())

    return Row


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_fields_values_and_texts_are_those_of_the_standard_library(options: dict[str, bool]) -> None:
    values: list[dict[str, Any]] = [{"size": 1}, {"name": "b", "size": 2}, {"size": 3, "tags": ["y"]}]
    for given in values:
        expected, found = (cls(**given) for cls in classes(options))
        assert dataclasses.asdict(found) == dataclasses.asdict(expected)
        assert repr(found) == repr(expected)
        assert dataclasses.asdict(dataclasses.replace(found, size=9)) == dataclasses.asdict(
            dataclasses.replace(expected, size=9)
        )
        assert hasattr(found, "__dict__") == hasattr(expected, "__dict__")
    assert [cls(1, "a", ["x"]).name for cls in classes(options)] == ["A", "A"]
    assert classes(options)[1](1).tags is not classes(options)[1](1).tags


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equality_and_hashes_are_those_of_the_standard_library(options: dict[str, bool]) -> None:
    for cls in classes(options):
        assert (cls(1) == cls(1)) is options["eq"]
        assert cls(1) != cls(2) and cls(1) != 1
    standard, ours = classes(options)
    assert (standard.__hash__ is None) is (ours.__hash__ is None)
    if options["eq"] and options["frozen"]:
        assert hash(ours(1, tags=())) == hash(ours(1, tags=()))


@pytest.mark.parametrize(
    "call",
    [lambda c: c(), lambda c: c(1, "a", [], 4), lambda c: c(1, size=2), lambda c: c(1, other=2), lambda c: c(name="a")],
    ids=["none", "many", "twice", "unknown", "missing"],
)
def test_wrong_arguments_are_a_type_error(call: Any) -> None:
    for cls in classes({"frozen": True}):
        with pytest.raises(TypeError):
            call(cls)


@pytest.mark.parametrize("slots", [True, False])
def test_a_frozen_object_cannot_be_changed(slots: bool) -> None:
    for cls in classes({"frozen": True, "slots": slots}):
        row = cls(1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            row.size = 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            del row.size
        assert row.size == 1


@pytest.mark.parametrize("slots", [True, False])
def test_other_objects_can_be_changed(slots: bool) -> None:
    for cls in classes({"slots": slots}):
        row = cls(1)
        row.size = 2
        assert row == cls(2)


@LIGHT(frozen=True, slots=True)
class Slotted:
    """A class that pickle finds by name."""

    size: int
    name: str = "?"


@LIGHT(frozen=True)
class Plain:
    """A class that pickle finds by name."""

    size: int
    name: str = "?"


@pytest.mark.parametrize("cls", [Slotted, Plain])
def test_objects_can_be_copied_and_pickled(cls: Any) -> None:
    row = cls(1, "a")
    for again in (copy.copy(row), copy.deepcopy(row), pickle.loads(pickle.dumps(row))):
        assert again == row and again is not row
