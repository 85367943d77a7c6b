"""Records for JSON, copied from the attributes of objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import pytest

from tb_memplugin.questions.records import record, records


@dataclass(frozen=True)
class Part:
    name: str
    size: int = 3


@dataclass(frozen=True)
class Whole:
    title: str = "whole"
    names: tuple[str, ...] = ("a", "b")
    parts: tuple[Part, ...] = (Part("left"), Part("right"))
    largest: Part | None = None
    hidden: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(part.size for part in self.parts)


class PartJson(TypedDict):
    name: str
    size: int


class WholeJson(TypedDict):
    title: str
    bytes: int
    names: list[str]
    parts: list[PartJson]
    largest: PartJson | None
    note: NotRequired[str]


def test_keys_are_copied_from_attributes_and_properties() -> None:
    assert record(PartJson, Part("left")) == {"name": "left", "size": 3}
    assert record(WholeJson, Whole())["bytes"] == 6


def test_records_inside_of_records_are_copied_too() -> None:
    found = record(WholeJson, Whole(largest=Part("right")))
    assert found == {
        "title": "whole",
        "bytes": 6,
        "names": ["a", "b"],
        "parts": [{"name": "left", "size": 3}, {"name": "right", "size": 3}],
        "largest": {"name": "right", "size": 3},
    }
    assert list(found) == ["title", "bytes", "names", "parts", "largest"]  # the order of the declaration
    assert record(WholeJson, Whole())["largest"] is None


def test_a_given_value_is_used_before_an_attribute_and_the_first_source_before_the_next() -> None:
    assert record(PartJson, Part("left"), size=7) == {"name": "left", "size": 7}
    assert record(WholeJson, Whole("first"), Whole("second"), note="given")["title"] == "first"
    assert record(PartJson, Whole(), Part("left"))["name"] == "left"


def test_a_record_can_be_made_of_another_one() -> None:
    assert record(PartJson, {"name": "left", "hidden": 1}, Part("right", 5)) == {"name": "left", "size": 5}


def test_a_key_without_a_value_is_an_error() -> None:
    with pytest.raises(TypeError, match="PartJson: nothing has a value for name"):
        record(PartJson, Whole(), size=1)


def test_a_value_without_a_key_is_an_error() -> None:
    with pytest.raises(TypeError, match="PartJson has no key color"):
        record(PartJson, Part("left"), color="red")


def test_several_objects_are_several_records() -> None:
    assert records(PartJson, (Part("left"), Part("right", 4))) == [
        {"name": "left", "size": 3},
        {"name": "right", "size": 4},
    ]
