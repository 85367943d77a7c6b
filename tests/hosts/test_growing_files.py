"""Files that a job appends to while pages follow it: what an answer costs, and what is kept of earlier versions."""

from __future__ import annotations

import gc
import time
import weakref
from pathlib import Path

import pytest
from support.watch_files import live_file, saw_tooth, watch_bytes
from werkzeug.test import Client, TestResponse

from tb_memplugin import logdir
from tb_memplugin.catalog import catalog
from tb_memplugin.catalog import listing as listings
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.logdir import HostFile, Run

SAMPLES = 40


class Job:
    """A job's file, which grows, and a client of the server that shows it."""

    def __init__(self, logdir: Path) -> None:
        self.path, self.samples = live_file(logdir, SAMPLES, devices=1), SAMPLES
        self.catalog = Catalog(str(logdir))
        self.client = Client(MemoryApp(self.catalog))
        self.run = self.catalog.runs()[0].name

    def append(self) -> None:
        """Write a file with one more sample, which begins as the last one."""
        self.samples += 1
        content = watch_bytes({"cuda:0": saw_tooth(self.samples)}, steps={at: at // 4 for at in range(0, SAMPLES, 4)})
        assert content.startswith(self.path.read_bytes())
        self.path.write_bytes(content)

    def get(self, route: str, tag: str = "", **query: object) -> TestResponse:
        return self.client.get(f"/api/{route}", query_string=query, headers={"If-None-Match": tag} if tag else {})

    def listed(self, tag: str = "") -> TestResponse:
        return self.get("recordings", tag, run=self.run)

    def recording(self) -> str:
        found = self.listed().json
        assert found is not None
        return str(found["recordings"][0]["id"])


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with each file that is read."""
    reads, read = list[str](), listings.read_file

    def counted(file: HostFile, run: str) -> listings.Listing:
        reads.append(file.path)
        return read(file, run)

    monkeypatch.setattr(catalog, "read_file", counted)
    return reads


@pytest.mark.parametrize("route", ["recordings", "memory_profile", "usage", "rows", "runs"])
def test_an_answer_without_news_reads_nothing_and_has_no_body(
    job: Job, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    query = {"run": job.run} if route == "recordings" else {} if route == "runs" else {"id": job.recording()}
    first = job.get(route, **query)
    reads = count_reads(monkeypatch)
    again = job.get(route, first.headers["ETag"], **query)
    assert (again.status_code, again.data, reads) == (304, b"", [])
    job.append()
    grown = job.get(route, first.headers["ETag"], **query)
    assert grown.status_code == 200 and grown.data != first.data
    assert reads == ([] if route == "runs" else [str(job.path)])


def test_all_answers_about_a_new_sample_read_the_file_once(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = job.recording()
    reads = count_reads(monkeypatch)
    job.append()
    lengths = [job.listed().json["recordings"][0]["length"]]  # type: ignore[index]
    for route in ("memory_profile", "rows", "usage", "leaks"):
        assert job.get(route, id=recording).status_code == 200
    assert lengths == [SAMPLES + 1]
    assert reads == [str(job.path)]


def test_earlier_versions_of_a_file_are_not_kept(job: Job) -> None:
    recording = job.recording()
    versions = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(30):
            job.append()
            for route in ("memory_profile", "rows", "leaks", "usage"):
                job.get(route, id=recording)
            job.get("usage", id=recording, to=job.samples)  # an answer of its own for each length
            versions.append(weakref.ref(job.catalog.recording(recording)))
        alive = sum(version() is not None for version in versions)
    finally:
        gc.enable()
    assert alive <= 2, "the newest, and one that a last answer may still use"


def test_a_slow_search_is_not_repeated_for_each_part_of_a_request(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    searches, search, now = list[str](), logdir.find_all, [time.monotonic()]

    def slowly(root: str) -> list[Run]:
        searches.append(root)
        now[0] += 0.3
        return search(root)

    monkeypatch.setattr(logdir, "find_all", slowly)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    first = job.get("runs")
    now[0] += 0.4
    job.append()
    searches.clear()
    again = job.get("runs", first.headers["ETag"])
    assert again.status_code == 200 and again.data != first.data
    assert len(searches) == 1
    now[0] += 0.4
    job.get("runs")
    assert len(searches) == 2, "a result is not kept for long"
