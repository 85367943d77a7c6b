"""Knobs as users write them."""

from __future__ import annotations

import pytest

from tb_memplugin.errors import InputError
from tb_memplugin.fit.knobs import parse_fixed, parse_varied
from tb_memplugin.model.fit import parse_value


def test_a_name_alone_is_searched_in_steps_of_the_functions_own_value() -> None:
    found = parse_varied("batch", 8)
    assert (found.searched, found.values[0], found.values[1], found.values[-1]) == (True, 8, 16, 8192)


def test_a_range_is_searched_and_a_list_is_tried() -> None:
    assert list(parse_varied("batch=4:12:4", 8).values) == [4, 8, 12]
    assert list(parse_varied("batch=3:5", None).values) == [3, 4, 5]
    found = parse_varied("remat=none,full", "none")
    assert (found.searched, list(found.values)) == (False, ["none", "full"])


def test_values_are_numbers_where_they_can_be() -> None:
    assert [parse_value(text) for text in ("3", "0.5", "True", "false", "dots")] == [3, 0.5, True, False, "dots"]
    assert parse_fixed("layers=12") == ("layers", 12)


@pytest.mark.parametrize("text", ["", "=3", "batch=9:3", "batch=0:3", "batch=1:4:0", "2x=3"])
def test_others_get_a_message(text: str) -> None:
    with pytest.raises(InputError):
        parse_varied(text, 8)


def test_a_knob_without_a_number_needs_a_range() -> None:
    with pytest.raises(InputError, match="LOW:HIGH"):
        parse_varied("remat", "none")
