"""The command `cache`."""

from __future__ import annotations

import argparse

from tb_memplugin.commands.support.terminal import reply
from tb_memplugin.fit import cache as fit
from tb_memplugin.fleet.cache import SummaryCache
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION
from tb_memplugin.questions.asking.files import CacheAnswerJson, CachedSummariesJson
from tb_memplugin.questions.records import record
from tb_memplugin.sizes import bytes_text, counted


def run(arguments: argparse.Namespace) -> None:
    summaries, programs = SummaryCache(), fit.Cache(fit.SETTINGS.folder(), fit.SETTINGS.bytes())
    if arguments.clear in ("fleet", "all"):
        summaries.clear()
    if arguments.clear in ("fit", "all"):
        programs.clear()
    of_fleet, (compiled, size) = summaries.content(), programs.content()
    found: CacheAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "fleet": record(CachedSummariesJson, of_fleet, folder=str(of_fleet.folder), limit_bytes=of_fleet.most),
        "fit": {"folder": str(programs.folder), "programs": compiled, "bytes": size, "limit_bytes": programs.most},
        "next": [],
    }
    summarized = f"summaries of {counted(of_fleet.files, 'file')} and {counted(of_fleet.programs, 'program')}"
    kept = {"fleet": summarized, "fit": counted(compiled, "compiled program")}
    texts = (
        f"{name:5}  {bytes_text(of['bytes'])} of {bytes_text(of['limit_bytes'])}, {kept[name]}, in {of['folder']}"
        for name, of in (("fleet", found["fleet"]), ("fit", found["fit"]))
    )
    reply(arguments.json, lambda: found, texts)
