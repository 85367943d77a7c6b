"""The page's generated client, compared with the declared endpoints."""

from __future__ import annotations

from functools import cache
from inspect import signature
from pathlib import Path

import pytest

from tb_memplugin.questions.asking.endpoint import endpoints
from tools.generate_client import FOLDER, generate

generated = cache(generate)  # a second of processor time


@pytest.mark.parametrize("name", sorted(generated()))
def test_the_committed_file_is_up_to_date(name: str) -> None:
    assert (Path(FOLDER) / name).read_text() == generated()[name], "run `make client`"


def test_nothing_else_is_generated() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {name for name in generated() if "/" not in name}


@pytest.mark.parametrize("route", sorted(endpoints()))
def test_each_input_is_an_argument(route: str) -> None:
    endpoint = endpoints()[route]
    assert len(signature(endpoint.function).parameters) == len(endpoint.inputs)
