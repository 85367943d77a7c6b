"""The page's offline answers, computed from a report, against the server's for real recordings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.servers import DATA, DEMO
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.sources import catalog_source
from tb_memplugin.questions.asking.endpoint import ENDPOINTS, endpoints

FRONTEND = Path(__file__).resolve().parents[3] / "frontend"
TESTS = "src/server_answers.test.ts"
SHARED = [DATA / "torch_snapshot", DATA / "xplane" / "tracelens_te_fused_attn"]
SAMPLES = 40  # rows or positions of each recording


def stored(route: str, recording_id: str, catalog: Catalog) -> bytes:
    return ENDPOINTS[route].report_answer({"id": recording_id}, catalog_source(catalog))


def spread(first: int, last: int) -> list[int]:
    """Return both ends, and up to SAMPLES numbers between them."""
    return sorted({*range(first, last + 1, max((last - first) // SAMPLES, 1)), last})


def compared(catalog: Catalog, client: Client, recording_id: str) -> dict[str, Any]:
    recording = catalog.recording(recording_id)
    length, rows = recording.length, len(recording.allocations)

    def get(route: str, **query: int) -> bytes:
        answer = client.get(f"/api/{route}", query_string={"id": recording_id, **query})
        assert answer.status_code == 200, answer.text
        return answer.get_data()

    windows = [(0, length, 1024), (0, length, 7), (length // 3, 2 * length // 3, 5), (length // 2, length, 8192)]
    positions = spread(-1, length - 1)
    return {
        "id": recording_id,
        **{route: b64encode(stored(route, recording_id, catalog)).decode() for route in ("rows", "details", "usage")},
        "joins": json.loads(stored("joins", recording_id, catalog)),
        "answers": {
            "details": [json.loads(get("details", row=row)) for row in spread(0, rows - 1)],
            "usage": [
                {
                    "query": {"id": recording_id, "from": start, "to": end, "buckets": count},
                    "answer": b64encode(get("usage", **{"from": start, "to": end, "buckets": count})).decode(),
                }
                for start, end, count in windows
            ],
            "joins": [json.loads(get("joins", at=at)) for at in positions],
            # An allocator's own regions end at the addresses seen, so the page stacks its rows and has no such list.
            "holes": [json.loads(get("holes", at=at)) for at in positions] if recording.reported is None else [],
        },
    }


def recordings(catalog: Catalog) -> list[str]:
    found = [r for run in catalog.runs() for r in catalog.listing(run.name).recordings]
    return [r.id for r in found if len(r.allocations) and not r.kind.has_call_graph]


@pytest.mark.skipif(not (FRONTEND / "node_modules").exists(), reason="the page's tests need npm ci")
@pytest.mark.parametrize("logdirs", [[DEMO], SHARED], ids=["demo", "shared"])
def test_they_are_the_servers(logdirs: Sequence[Path], tmp_path: Path) -> None:
    found = [logdir for logdir in logdirs if logdir.exists()]
    if not found:
        pytest.skip(f"none of {logdirs}")
    endpoints()
    cases = [case for logdir in found for case in compared_all(logdir)]
    file = tmp_path / "server_answers.json"
    file.write_text(json.dumps(cases))
    # One Vitest for all, as it takes longer to start than to test.
    vitest = [shutil.which("npx") or "npx", "vitest", "run", TESTS]
    environment = {**os.environ, "SERVER_ANSWERS": str(file)}
    ran = subprocess.run(vitest, cwd=FRONTEND, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    assert f"{4 * len(cases)} passed" in ran.stdout


def compared_all(logdir: Path) -> list[dict[str, Any]]:
    catalog = Catalog(str(logdir))
    client = Client(MemoryApp(catalog))
    found = [compared(catalog, client, recording_id) for recording_id in recordings(catalog)]
    assert found, logdir
    return found
