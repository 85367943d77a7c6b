"""The limits that docs/security.md promises, checked against the code."""

from __future__ import annotations

from support.markdown import section
from support.servers import REPOSITORY

from tb_memplugin.catalog import fit_records, uploads
from tb_memplugin.formats import OOM_TEXT_BYTES
from tb_memplugin.hosts import http_messages
from tb_memplugin.hosts.serving import server
from tb_memplugin.readers.common import budget

PAGE = REPOSITORY / "docs" / "security.md"


def mib(size: int) -> str:
    return f"{size >> 20} MiB"


def test_the_limits_of_memory_are_those_of_the_code() -> None:
    [table] = section(PAGE, "How much memory a file may take").tables
    limits = {row[0]: row[1] for row in table}
    expected = {
        "everything read from a plain file": f"{mib(budget.BASE_BYTES)} + {budget.MULTIPLE} n",
        "everything read from a gzip file": f"{mib(budget.BASE_BYTES)} + {budget.COMPRESSED_MULTIPLE} n",
        "of it, the decompressed content": f"{mib(budget.CONTENT_BASE_BYTES)} + {budget.CONTENT_MULTIPLE} n",
        "a text with an out-of-memory error": f"its last {mib(OOM_TEXT_BYTES)} are read",
        "a record of a fit, `fit.json`": mib(fit_records.MAX_RECORD_BYTES),
        "files that are being sent to the page": f"{mib(uploads.MAX_UPLOAD_BYTES)}; others are refused meanwhile",
        "bodies of all requests that are arriving or wait": mib(server.MAX_ARRIVED_BYTES),
        "a pasted text": f"{mib(http_messages.MAX_BODY_BYTES)}; {uploads.MAX_TEXTS} texts are kept",
    }
    assert {what: limits.get(what) for what in expected} == expected


def test_the_limits_of_the_server_are_those_of_the_code() -> None:
    text = section(PAGE, "What the servers accept").text
    assert f"limited to {server.MAX_HEADER_BYTES >> 10} KiB" in text
    assert f"within {server.REQUEST_SECONDS} seconds, its body within {server.BODY_SECONDS}" in text
    assert f"closed after {server.IDLE_SECONDS} seconds" in text
