"""Every pattern that is used on the content of files, on adversarial texts: its time is linear, and small."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tb_memplugin

TESTS, PACKAGE = Path(__file__).parent, Path(tb_memplugin.__file__).parent
SECONDS = 900  # on busy cores

CODE = """
import importlib, pkgutil, re, sys, time
from functools import partial
from pathlib import Path
import tb_memplugin
from support.adversarial_texts import texts
from tb_memplugin.readers.oom_text.message import MessageKind

SIZE, LIMIT = 8_000, 2e-6  # seconds of the processor per character; real texts take 1e-8 to 1e-7
# Patterns for command lines, scripts and the names of files, which have at most 1,024 characters.
SHORT_TEXTS = ("tb_memplugin.commands", "tb_memplugin.fit.", "tb_memplugin.logdir", "tb_memplugin.capture",
               "tb_memplugin.protos", "tb_memplugin.questions.fit.words", "tb_memplugin.__main__")

def methods(source):
    # The methods of patterns that a text calls, by the names of the patterns.
    found = {}
    for name, method in re.findall(r"\\b(\\w+)\\.(search|match|fullmatch|sub|findall|finditer|split)\\b", source):
        found.setdefault(name, set()).add(method)
    return found

def seconds(pattern, method, text):
    begin = time.process_time()
    if method in ("match", "fullmatch", "search"):
        getattr(pattern, method)(text)
    else:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - begin

def with_ends(pattern):
    # Each text, and each with an end that few patterns match: without it, what repeats may match to the end.
    for text in texts(pattern, SIZE):
        yield text
        yield text[:-1] + "!"

def is_slow(pattern, method, text):
    subject = text.encode("latin1", "replace") if isinstance(pattern.pattern, bytes) else text
    # An eighth of a text on which a pattern is quadratic takes a sixty-fourth of the time, which is above this.
    if seconds(pattern, method, subject[: SIZE // 8 - 1] + subject[-1:]) < LIMIT * SIZE / 160:
        return False
    # Again where it is slow, as another process may have been the reason.
    return all(seconds(pattern, method, subject) > LIMIT * SIZE for _ in range(4))

sources = {str(path): path.read_text() for path in Path(tb_memplugin.__file__).parent.rglob("*.py")}
everywhere = methods("\\n".join(sources.values()))
slow, seen = [], set()
for module in pkgutil.walk_packages(tb_memplugin.__path__, "tb_memplugin."):
    if module.name.startswith(SHORT_TEXTS):
        continue
    try:
        loaded = importlib.import_module(module.name)
    except ImportError:
        continue  # of a framework that is not installed
    own = methods(sources.get(loaded.__file__, ""))
    for name, value in vars(loaded).items():
        values = value if isinstance(value, tuple) else (value,)
        declared = [pattern for one in values if isinstance(one, MessageKind) for pattern in one.patterns()]
        for pattern in (*values, *declared):
            if not isinstance(pattern, re.Pattern) or (pattern, name) in seen:
                continue
            seen.add((pattern, name))
            for method in sorted(own.get(name) or everywhere.get(name, {"finditer"})):
                if found := next(filter(partial(is_slow, pattern, method), with_ends(pattern)), ""):
                    slow.append(f"{module.name}.{name}.{method}: {found[:60]!r}...{found[-1:]!r}")
assert len(seen) > 100
print("\\n".join(slow))
"""


def test_no_pattern_is_slow() -> None:
    paths = [str(TESTS), str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    found = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, timeout=SECONDS, check=True, capture_output=True, text=True
    )
    assert not found.stdout.strip()
