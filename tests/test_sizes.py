"""Sizes as people write them, and as tools print them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_memplugin import sizes
from tb_memplugin.errors import InputError
from tb_memplugin.sizes import parse_size, printed_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1048576", 1_048_576),
        ("512B", 512),
        ("512 B", 512),
        ("5.5e9", 5_500_000_000),
        ("5.5e9B", 5_500_000_000),
        ("70GiB", 75_161_927_680),
        (" 70 GiB ", 75_161_927_680),
        ("70GB", 70_000_000_000),
        ("70 GB", 70_000_000_000),
        ("71.2GiB", 76_450_417_869),  # 71.2 * 1024**3 = 76450417868.8
        ("1.5 KiB", 1536),
        ("1.5kB", 1500),
        ("1.5KB", 1500),
        ("2TiB", 2_199_023_255_552),
    ],
)
def test_what_is_clear_is_taken_as_written(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["70G", "70Gb", "70g", "71.2M", "70gib", "1K", "5x"])
def test_a_unit_that_may_mean_two_things_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"GiB|KiB|MiB"):
        parse_size(text)


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "1,024", "1e999", "1e20EiB", "9" * 30, "nan", "٣GiB", "1 0"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"[Nn]ot a size"):
        parse_size(text)


def test_the_remedy_says_both_readings() -> None:
    with pytest.raises(InputError, match=r"write 70GiB \(1024\) or 70GB \(1000\)"):
        parse_size("70G")


@given(st.text(max_size=30))
def test_any_text_is_a_size_or_an_input_error(text: str) -> None:
    try:
        assert 0 <= parse_size(text) < 2**63
    except InputError:
        pass


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("17.08G", 18_339_510_354),  # 17.08 * 1024**3 = 18339510353.92
        ("980.0K", 1_003_520),
        ("0B", 0),
        ("1.97GiB", 2_115_271_393),  # 1.97 * 1024**3 = 2115271393.28
        ("20.00 MiB", 20_971_520),
        ("17.94 GB", 19_262_928_323),  # for MPS, whose GB is 1024**3
        ("-25.62GiB", -27_509_265_531),
        ("512 bytes", 512),
    ],
)
def test_tools_print_powers_of_1024(text: str, size: int) -> None:
    assert printed_size(text) == size


def test_a_tool_may_mean_powers_of_1000() -> None:
    assert printed_size("268.96MB", decimal=True) == 268_960_000
    assert printed_size("1.00MiB", decimal=True) == 1_048_576


@pytest.mark.parametrize("text", ["unknown size", "", "G", "1.2.3G", "9007199254740993", "8E"])
def test_what_is_not_a_size_is_none(text: str) -> None:
    assert printed_size(text) is None


def test_numpy_leaves_the_digits_after_a_point_out() -> None:
    assert printed_size("745. GiB") == 745 * 2**30


def test_negative_figures_have_a_minus_sign() -> None:
    assert sizes.bytes_text(-3 * 2**20) == "\N{MINUS SIGN}3.00 MiB"
    assert sizes.signed_bytes(-512) == "\N{MINUS SIGN}512 B"
    assert sizes.signed_bytes(512) == "+512 B"
    assert sizes.signed_percent(-0.814) == "\N{MINUS SIGN}81.4%"


def test_shares_are_rounded_half_up_in_one_place() -> None:
    assert sizes.percent_text(5, 8) == "63%"
    assert sizes.percent_text(0.125) == "13%"
    assert sizes.percent_text(1, 800) == "<1%"
    assert sizes.percent_text(0, 8) == sizes.percent_text(0, 0) == "0%"
    assert sizes.percent_text(5, 8, 1) == "62.5%"
    package = Path(sizes.__file__).parent
    texts = {path: path.read_text() for path in package.rglob("*.py")}
    rounding = {path.name for path, text in texts.items() if re.search(r"\.\d%\}", text)}
    assert rounding == {"sizes.py", "chips.py", "targets.py"}  # and the part of a GPU that JAX may use, which is set
