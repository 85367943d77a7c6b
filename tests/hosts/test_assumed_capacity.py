"""A capacity that a user assumes, where the profile has none."""

from __future__ import annotations

from typing import Any

import pytest
from support.payload_decoder import decode
from support.servers import DEMO
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts.api import MemoryApp

CAPACITY = 16_911_433_728


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(MemoryApp(Catalog(str(DEMO))))


def overview(client: Client, run: str, **query: Any) -> dict[str, Any]:
    answer = client.get("/api/overview", query_string={"run": run, **query}).json
    assert answer is not None
    return {row["id"]: row for row in answer["rows"]}


def test_it_reaches_every_answer_about_a_recording_without_capacity(client: Client) -> None:
    before = overview(client, "train_step/cpu")
    after = overview(client, "train_step/cpu", capacity=CAPACITY)
    assert {row["capacity_bytes"] for row in before.values()} == {None}
    assert {row["capacity_bytes"] for row in after.values()} == {CAPACITY}
    for identifier in after:
        answer = client.get("/api/memory_viewer", query_string={"id": identifier, "capacity": CAPACITY})
        meta, _ = decode(answer.data)
        assert meta["recording"]["capacity_bytes"] == CAPACITY
        assert meta["recording"]["capacity_source"] == "assumed"
    assert overview(client, "train_step/cpu") == before


def test_a_capacity_that_the_profile_records_stays(client: Client) -> None:
    assert overview(client, "v5e_train_step", capacity=1) == overview(client, "v5e_train_step")


@pytest.mark.parametrize("capacity", ["0", "-1", "x", "1e9", str(1 << 60)])
def test_other_values_are_rejected(capacity: str, client: Client) -> None:
    query = {"run": "train_step/cpu", "capacity": capacity}
    assert client.get("/api/overview", query_string=query).status_code == 400
