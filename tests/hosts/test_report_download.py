"""The route that sends a run's report: its content, its limits, and who may ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.servers import DEMO
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts import report
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.report import file_name

RUN = "train_step/cpu"
ROUTE = "/api/report"


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(MemoryApp(Catalog(str(DEMO))))


def test_a_run_is_sent_as_the_report_that_export_writes(client: Client) -> None:
    answer = client.get(ROUTE, query_string={"run": RUN})
    assert answer.status_code == 200 and answer.mimetype == "text/html"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="memory-report-train_step_cpu.html"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    recordings = Catalog(str(DEMO)).listing(RUN).recordings
    written = b"".join(report.Report(f"Memory report of {RUN}", recordings, recordings, report.MAX_BYTES).pieces())
    assert len(recordings) > 1
    assert answer.get_data() == written


def test_the_report_is_sent_in_pieces(client: Client) -> None:
    pieces: list[bytes] = list(client.get(ROUTE, query_string={"run": RUN}).iter_encoded())
    assert len(pieces) > 10
    assert pieces[-1].endswith(b"</html>\n")


def test_a_run_without_recordings_is_an_error_with_a_status(client: Client) -> None:
    for query, status in (({}, 400), ({"run": "no such run"}, 404)):
        answer = client.get(ROUTE, query_string=query)
        assert (answer.status_code, answer.mimetype) == (status, "application/json")


def test_other_sites_cannot_start_a_report(client: Client) -> None:
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert client.head(ROUTE, query_string={"run": RUN}, headers={"Sec-Fetch-Site": site}).status_code == status


def test_few_reports_are_written_at_once_and_a_client_that_leaves_makes_room(client: Client) -> None:
    kept = [client.get(ROUTE, query_string={"run": RUN}) for _ in range(report.MAX_AT_ONCE)]
    refused = client.get(ROUTE, query_string={"run": RUN})
    assert refused.status_code == 503
    assert refused.json is not None and "try again" in refused.json["error"]["remedy"]
    kept[0].close()
    for _ in range(2 * report.MAX_AT_ONCE):  # also after each of these
        assert client.head(ROUTE, query_string={"run": RUN}).status_code == 200
        assert client.get(ROUTE, query_string={"run": "none"}).status_code == 404
    assert client.get(ROUTE, query_string={"run": RUN}).status_code == 200
    kept[1].close()


def test_a_recording_that_is_too_large_is_refused_before_it_is_sent(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MAX_ROWS", 10)
    answer = client.get(ROUTE, query_string={"run": RUN})
    assert answer.status_code == 413
    assert answer.json is not None and "tb-memplugin export" in answer.json["error"]["remedy"]


def test_a_hostile_name_of_a_run_is_a_plain_file_name() -> None:
    assert file_name("train/cpu") == "memory-report-train_cpu.html"
    for name in ('"\r\nSet-Cookie: a', "../../etc/passwd", "é" * 500, ".", "", "\udce9"):
        found = file_name(name)
        assert Path(found).name == found and found.isascii() and found.isprintable() and len(found) < 120
        assert not set(found) & set('"\\/;\r\n') and found.endswith(".html")
