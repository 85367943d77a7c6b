"""Links, commands, targets, modules and functions in the Markdown pages, checked against what exists."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
from support.markdown import PAGES, anchors, code_lines, inline_code, links, section
from support.servers import DEMO, REPOSITORY

from tb_memplugin.capture import __all__ as CAPTURE
from tb_memplugin.cli import _parser
from tb_memplugin.formats import FORMATS, Format

ROOTS = [REPOSITORY / "tb_memplugin", REPOSITORY / "frontend" / "src", REPOSITORY]
MODULE = re.compile(r"([\w./]+\.(?:py|pyx|ts|tsx))(?:: (\w+(?:, \w+)*))?")
FOLDER = re.compile(r"[\w.]+/(?:[\w.]+/)*")
DEFINITION = (
    r"(?m)^\s*(?:export )?(?:async )?(?:def|class|cpdef|function|const|interface|type) (?:[\w\[\], ]+ )?{}\b|^{}\b.* = "
)
WRITTEN = {"report.html", "buffers.parquet"}
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))


def command_lines(page: Path) -> list[str]:
    """Return the shell commands of a page: lines of code blocks, and inline code in tables."""
    lines = [re.sub(r"\s+#.*", "", line.removeprefix("$ ")).strip() for line in code_lines(page)]
    return [*lines, *inline_code(page)]


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        if path.startswith(("https://", "http://")):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {link}"


@each_page
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z]+):", (REPOSITORY / "Makefile").read_text()))
    for line in command_lines(page):
        if line.startswith("make "):
            named = {word for word in line.split()[1:] if re.fullmatch("[a-z]+", word)}
            assert named <= targets, f"{page.name}: {line}"


def subcommands() -> dict[str, argparse.ArgumentParser]:
    action = next(each for each in _parser()._actions if isinstance(each, argparse._SubParsersAction))
    return dict(action.choices)


@each_page
def test_commands_and_their_options_exist(page: Path) -> None:
    commands = subcommands()
    for line in command_lines(page):
        words = shlex.split(line.partition(" -- ")[0]) if line.startswith("tb-memplugin ") else []
        if len(words) < 2 or words[1].startswith("-"):
            continue
        assert words[1] in commands, f"{page.name}: {line}"
        known = {option for action in commands[words[1]]._actions for option in action.option_strings}
        options = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
        assert options <= known, f"{page.name}: {line}"


@each_page
def test_functions_of_capture_exist(page: Path) -> None:
    named = set(re.findall(r"\bcapture\.([a-z_]+)\(", page.read_text()))
    assert named <= set(CAPTURE)


@cache
def folders() -> list[str]:
    """Return the paths of all folders with code, each ending in a slash."""
    roots = [
        REPOSITORY / name
        for name in ("tb_memplugin", "frontend/src", "tests", "benchmarks", "demo_logdir", "docs", "examples")
    ]
    return [f"{path}/" for root in roots for path in [root, *root.rglob("*")] if path.is_dir()]


@each_page
def test_modules_and_functions_exist(page: Path) -> None:
    for code in inline_code(page):
        if FOLDER.fullmatch(code) and not code.startswith("shared/"):
            assert any(folder.endswith(f"/{code}") for folder in folders()), f"{page.name}: {code}"
        if found := MODULE.fullmatch(code):
            files = [path for root in [*ROOTS, page.parent, page.parent / "src"] if (path := root / found[1]).is_file()]
            assert files, f"{page.name}: {code}"
            for name in (found[2] or "").split(", "):
                assert not name or re.search(DEFINITION.format(name, name), files[0].read_text()), (
                    f"{page.name}: {code}"
                )


README = REPOSITORY / "README.md"
GUIDE = REPOSITORY / "docs" / "user-guide.md"


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.label)
def test_the_readme_has_every_format(known: Format) -> None:
    table = " ".join(cell for row in section(README, "What it reads").tables[0] for cell in row)
    assert any(f"`*{suffix}`" in table for suffix in (*known.suffixes, *known.found))


@pytest.mark.parametrize("page", [README, GUIDE], ids=lambda page: page.name)
def test_commands_on_the_demo_run(page: Path, tmp_path: Path) -> None:
    """Skip commands that start servers, which are tested as hosts; write output files to another folder."""
    program = REPOSITORY / ".venv" / "bin" / "tb-memplugin"
    ran = 0
    for line in code_lines(page):
        line = line.removeprefix("$ ")
        if line.startswith("tb-memplugin ") and "demo_logdir" in line:
            words = [
                re.sub(r"^(report\.html|buffers\.parquet)$", rf"{tmp_path}/\1", word) for word in shlex.split(line)
            ]
            done = subprocess.run([program, *words[1:]], cwd=DEMO.parent, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            ran += 1
    assert ran


def test_the_summary_in_the_readme_is_what_is_printed() -> None:
    lines = list(code_lines(README))
    first = next(i for i, line in enumerate(lines) if line == "$ tb-memplugin summary demo_logdir/v5e_train_step")
    shown = lines[first + 1 : first + 4]
    program = REPOSITORY / ".venv" / "bin" / "tb-memplugin"
    done = subprocess.run(
        [program, "summary", "demo_logdir/v5e_train_step"], cwd=DEMO.parent, capture_output=True, text=True, check=True
    )
    assert [line.rstrip() for line in done.stdout.splitlines()[:3]] == [line.rstrip() for line in shown]
