"""The GitHub Action's steps, run by bash with files in place of GitHub's; and the pre-commit hook."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.changed import changed_logdir
from support.servers import BIN, REPOSITORY

from tb_memplugin.cli import main

yaml = pytest.importorskip("yaml")
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]  # as GitHub starts it
# A stand-in for GitHub's command line: it keeps comments in a file, or refuses as for a token that may only read.
GH = """\
#!/usr/bin/env python3
import json, os, pathlib, sys
words, store = sys.argv[1:], pathlib.Path(os.environ["COMMENTS"])
if os.environ.get("REFUSE"):
    sys.exit("HTTP 403: Resource not accessible by integration")
comments = json.loads(store.read_text()) if store.exists() else {}
if "--method" not in words:
    marker = words[words.index("--jq") + 1].split('startswith("')[1].split('")')[0]
    print("\\n".join(key for key, text in comments.items() if text.startswith(marker)))
else:
    method, path = words[words.index("--method") + 1 :][:2]
    text = pathlib.Path(words[words.index("--field") + 1].removeprefix("body=@")).read_text()
    comments[path.rsplit("/", 1)[1] if method == "PATCH" else str(len(comments) + 1)] = text
    store.write_text(json.dumps(comments))
"""


class Job:
    """A job of GitHub that runs the action."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary, self.output, self.comments = folder / "summary", folder / "output", folder / "comments.json"
        (folder / "gh").write_text(GH)
        (folder / "gh").chmod(0o755)
        self.steps = yaml.safe_load((REPOSITORY / "action.yml").read_text())["runs"]["steps"]

    def run(self, inputs: dict[str, str], **environment: str) -> int:
        """Run the steps with these inputs on pull request 7; return the exit code of the last."""
        values = {f"inputs.{key}": value for key, value in inputs.items()}
        values |= {"github.token": "t", "github.event.pull_request.number": "7", "github.repository": "a/b"}
        self.log = ""
        for step in self.steps:
            if "if" in step and inputs["comment"] != "true":
                continue
            for line in self.output.read_text().splitlines() if self.output.exists() else ():
                key, _, value = line.partition("=")
                values[f"steps.check.outputs.{key}"] = value
            own = {key: _filled(text, values) for key, text in step["env"].items()}
            paths = {"RUNNER_TEMP": self.folder, "GITHUB_STEP_SUMMARY": self.summary, "GITHUB_OUTPUT": self.output}
            path = os.pathsep.join([str(self.folder), str(BIN), os.environ["PATH"]])
            given = {key: str(value) for key, value in paths.items()} | {"COMMENTS": str(self.comments), "PATH": path}
            assert "${{" not in step["run"]  # values reach the shell as variables only
            done = subprocess.run(
                [*BASH, "-c", step["run"]], env={**os.environ, **given, **own, **environment}, capture_output=True
            )
            self.log += done.stdout.decode() + done.stderr.decode()
        return done.returncode


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values[found[1]], str(text))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def inputs(folder: Path, name: str, **changed: str) -> dict[str, str]:
    """Return inputs that check a program against the baseline of `base`."""
    baseline = folder / "memory.json"
    if not baseline.exists():
        assert main(["baseline", str(changed_logdir("base", folder / "before")), "--write", str(baseline)]) == 0
    logdir = str(changed_logdir(name, folder / "now"))
    return {"logdir": logdir, "baseline": str(baseline), "tolerance": "0.1%", "comment": "true", **changed}


@pytest.mark.slow
def test_growth_fails_the_job_and_is_commented_once(job: Job, tmp_path: Path) -> None:
    assert job.run(inputs(tmp_path, "not_donated")) == 1
    assert "donated buffer `state` is copied now" in job.summary.read_text()
    assert job.run(inputs(tmp_path, "base")) == 0
    comments = json.loads(job.comments.read_text())
    assert len(comments) == 1  # updated
    assert "1 recording within 0.1% of the baseline" in comments["1"]


@pytest.mark.slow
def test_a_fork_without_a_token_has_the_summary(job: Job, tmp_path: Path) -> None:
    assert job.run(inputs(tmp_path, "not_donated"), REFUSE="1") == 1
    assert "donated buffer" in job.summary.read_text()
    assert "::notice::" in job.log


@pytest.mark.slow
def test_what_cannot_be_checked_is_2_and_no_comment(job: Job, tmp_path: Path) -> None:
    hostile = str(tmp_path / "$(touch pwned); ::error::x")
    assert job.run(inputs(tmp_path, "base", logdir=hostile)) == 2
    assert "Memory was not checked" in job.summary.read_text()
    assert not job.comments.exists() and not (tmp_path / "pwned").exists()
    assert not re.search(r"(?m)^::error", job.log)


def test_the_version_of_the_action_is_installed(job: Job, tmp_path: Path) -> None:
    """A package of that name in the runner's index could be anybody's."""
    pip = tmp_path / "python3"
    pip.write_text('#!/bin/sh\necho "$@" > "$RUNNER_TEMP/installed"\n')
    pip.chmod(0o755)
    source = str(tmp_path / "the action")
    path = os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"])
    assert job.run({**inputs(tmp_path, "base"), "comment": "false"}, PATH=path, GITHUB_ACTION_PATH=source) == 2
    assert (tmp_path / "installed").read_text() == f"-m pip install --quiet {source}\n"


def hook() -> dict[str, Any]:
    (found,) = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())
    return dict(found)


def test_the_hook_runs_the_check(tmp_path: Path) -> None:
    """Run its entry with arguments, as pre-commit does where pass_filenames is false."""
    given = inputs(tmp_path, "not_donated")
    words = [*shlex.split(hook()["entry"]), given["logdir"], "--baseline", given["baseline"], "--tolerance", "0.1%"]
    assert main(words[1:]) == 1
    assert hook()["pass_filenames"] is False and hook()["language"] == "system"
