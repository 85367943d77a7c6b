"""The registry of formats: every entry has a reader, and every file that a logdir lists can be opened."""

from __future__ import annotations

from importlib import import_module

import pytest

from tb_memplugin.errors import InputError
from tb_memplugin.formats import FORMATS, Format, format_of
from tb_memplugin.logdir.names import READABLE
from tb_memplugin.readers import open_file


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.label)
def test_a_format_names_a_function_that_opens_it(known: Format) -> None:
    module, _, function = known.opener.partition(":")
    assert callable(getattr(import_module(module), function))
    assert all(format_of(f"name{suffix}") is known for suffix in (*known.suffixes, *known.found))


@pytest.mark.parametrize("suffix", READABLE)
def test_every_file_that_a_logdir_lists_has_a_format(suffix: str) -> None:
    assert format_of(f"/logdir/name{suffix}") is not None


def test_the_error_of_an_unknown_file_lists_the_suffixes() -> None:
    with pytest.raises(InputError) as error:
        open_file(b"x", "/logdir/weights.npz")
    assert all(suffix in str(error.value) for known in FORMATS for suffix in known.suffixes)
