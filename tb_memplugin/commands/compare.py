"""The command `compare`."""

from __future__ import annotations

import argparse
from functools import partial

from tb_memplugin.commands.support.output import asked, listing_of, print_problems
from tb_memplugin.commands.support.terminal import complain, paragraphs, reply
from tb_memplugin.questions.compare.baseline_file import parse_tolerance
from tb_memplugin.questions.compare.compare_text import lines, markdown
from tb_memplugin.questions.compare.comparison import Pair
from tb_memplugin.questions.compare.pairs import compare_answer, compared_pairs, matched_pairs
from tb_memplugin.sizes import bytes_text


def run(arguments: argparse.Namespace) -> int:
    text = arguments.fail_if_peak_grows
    tolerance = parse_tolerance(text) if text else None
    answers, failed = compared_pairs(_pairs(arguments), arguments.at_a, arguments.at_b, arguments.by)
    print_problems(failed)
    question, texts = asked(arguments, arguments.a), map(markdown if arguments.markdown else lines, answers)
    answer = partial(compare_answer, answers, failed, question, arguments.b, arguments.by)
    reply(arguments.json, answer, paragraphs(texts))
    sides = [(one.comparison["a"]["recording"], one.comparison["b"]["recording"]) for one in answers]
    grown = [(a, b) for a, b in sides if tolerance and b["peak_bytes"] > tolerance.allowed(a["peak_bytes"])]
    for a, b in grown:
        growth = f"from {bytes_text(a['peak_bytes'])} to {bytes_text(b['peak_bytes'])}"
        complain(f"tb-memplugin: {b['id']}: the peak grew by more than {text}: {growth}")
    return 1 if grown else 2 if failed else 0


def _pairs(arguments: argparse.Namespace) -> list[Pair]:
    paths, wanted = (arguments.a, arguments.b), arguments.recording or ""
    sides = [listing_of(path) for path in paths]
    matched = matched_pairs(paths, sides, wanted)
    for number, (path, side) in enumerate(zip(paths, sides, strict=True)):
        paired = {id(pair[number]) for pair in matched}
        for unpaired in (r.id for r in side.recordings if wanted in r.id and id(r) not in paired):
            complain(f"tb-memplugin: only in {path}: {unpaired}")
    return matched
