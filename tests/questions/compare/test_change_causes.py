"""Compare's causes on the page are those of the command, and only programs have some."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.servers import DEMO
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.compare.pairs import compare_answer, compared_pairs

MENDED, FULL = "v5e_mended||jit_train_step|HBM", "v5e_out_of_memory||jit_train_step|HBM"


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(MemoryApp(Catalog(str(DEMO))))


def causes(client: Client, a: str, b: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = asked(client, "change_causes", a=a, b=b)["causes"]
    return found


def asked(client: Client, endpoint: str, **query: str) -> Any:
    answer = client.get(f"/api/{endpoint}", query_string=query)
    assert answer.status_code == 200, answer.text
    return json.loads(answer.data)


def test_they_are_those_of_the_command(client: Client) -> None:
    found = [cause["text"] for cause in causes(client, MENDED, FULL)]
    assert "donated buffer `opt_state` is copied now (35 arrays, +608 MiB)" in found
    sides = [str(DEMO / run) for run in ("v5e_mended", "v5e_out_of_memory")]
    programs = [[r for r in listing_of_path(side).recordings if r.kind == "program"][:1] for side in sides]
    compared = compared_pairs([(programs[0][0], programs[1][0])], None, None, "role")
    printed = compare_answer(*compared, Asked(sides[0], None), sides[1], "role")
    assert found == [cause["text"] for cause in printed["comparisons"][0]["causes"]]


def test_equal_programs_and_other_recordings_have_none(client: Client) -> None:
    assert causes(client, MENDED, MENDED) == []
    listing = asked(client, "recordings", run="device_profile")["recordings"]
    profiles = [each["id"] for each in listing if each["kind"] == "device_profile"]
    assert causes(client, profiles[0], profiles[-1]) == []
