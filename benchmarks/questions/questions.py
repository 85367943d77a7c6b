"""The questions: how a reader finds each answer, and what the answer is by the profiles' own truth."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.questions.profiles import (
    BATCHES,
    DEMO,
    FIXED_BYTES,
    ITEM_BYTES,
    LIMIT,
    Profiles,
    bytes_by_line,
    reserved_bytes,
)
from tb_memplugin.cli import main


class Reader:
    """Asks the first question itself, and the others as `next` of the last answer gives them."""

    def __init__(self) -> None:
        self.calls = 0
        self.bytes = 0
        self.answer: dict[str, Any] = {}

    def ask(self, *arguments: str) -> dict[str, Any]:
        """Run a command with --json and short lists, as the skill of agents asks for, and return its answer."""
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(io.StringIO()):
            main([*arguments, *([] if any(one.startswith("--top") for one in arguments) else ["--top=5"]), "--json"])
        text = printed.getvalue()
        self.calls += 1
        self.bytes += len(text.encode())
        self.answer = json.loads(text)
        return self.answer

    def follow(self, command: str, why: str = "") -> dict[str, Any]:
        """Run the first command of `next` with this name, whose reason contains `why`. LookupError where none has."""
        for further in self.answer["next"]:
            _, name, *arguments = further["command"]
            if name == command and why in further["why"]:
                return self.ask(name, *(argument for argument in arguments if argument != "--json"))
        raise LookupError(f"no `{command}` about {why!r} in {self.answer['next']}")


LEAK, MENDED = "make_leak_demo.py", "demo/leak_mended"


class AgentQuestion(NamedTuple):
    """A question, the way of a reader to its answer, and the known answer."""

    text: str
    find: Callable[[Reader], Any]
    known: Callable[[Profiles], Any]


def name_of(line: str) -> str:
    """Return a line without folders."""
    return Path(line).name


def find_line(reader: Reader) -> Any:
    line = reader.ask("explain", "demo/device_profile_leak/memory9.prof")["lines"][0]
    return name_of(line["line"]), line["bytes"]


def find_leak(reader: Reader) -> Any:
    reader.ask("summary", "demo/leak")
    if reader.answer["recordings"][0]["axis"] != "TIME":
        reader.follow("explain", "over time")
    else:
        reader.follow("explain")
    (leak,) = [one for one in reader.answer["leaks"]["findings"] if one["verdict"] == "leak"]
    return name_of(leak["site"]), round(leak["bytes_per_step"])


def find_no_leak(reader: Reader) -> Any:
    reader.ask("summary", MENDED)
    timed = [one["axis"] for one in reader.answer["recordings"]].index("TIME")
    reader.follow("explain", "over time" if timed else "")
    return reader.answer["leaks"]["verdicts"].get("leak", 0)


def find_saving(reader: Reader) -> Any:
    reader.ask("explain", "demo/leak")
    first = reader.follow("advice")["advice"][0]
    return first["saving_bytes"]


def find_outlier(reader: Reader) -> Any:
    worst = reader.ask("fleet", "pod", "--no-cache")["captures"][0]["memories"][0]["worst"]
    return worst["host"], worst["device"], worst["causes"][0]["site"].split()[0], worst["causes"][0]["bytes"]


def find_held_by_outlier(reader: Reader) -> Any:
    reader.ask("fleet", "pod", "--no-cache")
    reader.follow("explain", "worst device")
    planted = [one for one in reader.answer["lines"] if "checkpoint.py" in one["line"]]
    return sum(one["bytes"] for one in planted)


def find_buffer(reader: Reader) -> Any:
    reader.ask("explain", "demo/oom", "--recording=jit_oom")
    reader.follow("buffers")
    reader.follow("buffers")
    return reader.answer["size_bytes"], name_of(reader.answer["stack"][0]["file"])


def find_growth_of_files(reader: Reader) -> Any:
    first, last = (f"demo/device_profile_leak/memory{number}.prof" for number in (1, 9))
    (one,) = reader.ask("compare", first, last)["comparisons"]
    return one["b"]["bytes"] - one["a"]["bytes"]


def find_leaking_host(reader: Reader) -> Any:
    leak = capture(reader)["leaks"][0]
    return leak["hosts"][0], leak["site"].split()[0], leak["bytes"]


def find_rise(reader: Reader) -> Any:
    points = reader.ask("fleet", "--trend", "days", "--no-cache")["series"][0]["points"]
    rise = max(points, key=lambda point: point["rise_bytes"])
    return rise["day"], rise["changes"][0]["line"].partition("(")[2].rstrip(")")


def capture(reader: Reader) -> Any:
    return reader.ask("fleet", "pod", "--no-cache")["captures"][0]


def fits(reader: Reader, batch: int) -> Any:
    return reader.ask("fit", "fits", f"--set=batch={batch}")["candidates"][0]["fits"]


def activations(profiles: Profiles) -> int:
    """Return the bytes that the leaking script keeps of each step."""
    found = profiles.constants(LEAK)
    return found["BATCH"] * found["HIDDEN"] * 4


QUESTIONS = (
    AgentQuestion(
        "Which line holds the most memory, and how much?",
        find_line,
        lambda _: bytes_by_line(DEMO / "device_profile_leak" / "memory9.prof").most_common(1)[0],
    ),
    AgentQuestion(
        "How much memory is live in a device memory profile?",
        lambda reader: reader.ask("summary", "demo/device_profile_leak/memory9.prof")["recordings"][0]["peak_bytes"],
        lambda _: bytes_by_line(DEMO / "device_profile_leak" / "memory9.prof").total(),
    ),
    AgentQuestion(
        "Between the first and the ninth profile, how much did memory grow?",
        find_growth_of_files,
        lambda _: (
            bytes_by_line(DEMO / "device_profile_leak" / "memory9.prof").total()
            - bytes_by_line(DEMO / "device_profile_leak" / "memory1.prof").total()
        ),
    ),
    AgentQuestion(
        "Does it leak, where, and how fast?",
        find_leak,
        lambda profiles: (f"{LEAK}:{profiles.line_of(LEAK, 'train_step(params, batch)')}", activations(profiles)),
    ),
    AgentQuestion("Does the mended run still leak?", find_no_leak, lambda _: 0),
    AgentQuestion(
        "What saves the most, and how much?",
        find_saving,
        lambda profiles: (profiles.constants(LEAK)["STEPS"] - 1) * activations(profiles),
    ),
    AgentQuestion(
        "How much lower is the peak since the fix?",
        lambda reader: min(
            one["b"]["peak_bytes"] - one["a"]["peak_bytes"]
            for one in reader.ask("compare", "demo/leak", MENDED)["comparisons"]
        ),
        lambda profiles: -(profiles.constants(LEAK)["STEPS"] - 1) * activations(profiles),
    ),
    AgentQuestion(
        "What is the peak of the program, and at which instruction?",
        lambda reader: next(
            (one["peak_bytes"], one["peak_position"]) for one in reader.ask("summary", "generated")["recordings"]
        ),
        lambda profiles: (profiles.program.peak_bytes, profiles.program.peak_position),
    ),
    AgentQuestion(
        "How much does the program reserve?",
        lambda reader: reader.ask("summary", "generated")["recordings"][0]["reserved_bytes"],
        lambda profiles: profiles.program.reserved_bytes,
    ),
    AgentQuestion(
        "How much of HBM does the step reserve, buffers on the stacks of threads left out?",
        lambda reader: reader.ask("check", "demo/v5e_train_step", "--max-peak=1TiB")["checked"][0]["needed_bytes"],
        lambda _: reserved_bytes(DEMO / "v5e_train_step"),
    ),
    AgentQuestion(
        "By how much does the step exceed 3 GiB?",
        lambda reader: reader.ask("check", "demo/v5e_train_step", "--max-peak=3GiB")["broken"][0]["above_bytes"],
        lambda _: reserved_bytes(DEMO / "v5e_train_step") - (3 << 30),
    ),
    AgentQuestion(
        "Which is the largest buffer of the program that ran out of memory, and who made it?",
        find_buffer,
        lambda _: (327680 * 327680 * 4, "make_demo.py"),
    ),
    AgentQuestion(
        "Which device is the outlier, and why?",
        find_outlier,
        lambda profiles: next((one.host, one.memory, one.source_line, one.bytes) for one in profiles.pod.outliers),
    ),
    AgentQuestion(
        "How much does the outlier hold of what others do not have?",
        find_held_by_outlier,
        lambda profiles: profiles.pod.outliers[0].bytes,
    ),
    AgentQuestion(
        "Which host leaks, where, and how fast?",
        find_leaking_host,
        lambda profiles: next((one.host, one.source_line, one.bytes) for one in profiles.pod.leaks),
    ),
    AgentQuestion(
        "Which hosts have no file, and which a damaged one?",
        lambda reader: (
            (found := capture(reader))["missing"],
            [one["host"] for one in found["problems"]],
        ),
        lambda profiles: (profiles.pod.missing, list(profiles.pod.damaged)),
    ),
    AgentQuestion(
        "Which host runs another program?",
        lambda reader: [one["host"] for one in capture(reader)["other_programs"]],
        lambda profiles: profiles.pod.other_programs,
    ),
    AgentQuestion(
        "On which day did the peak rise, and by which line?",
        find_rise,
        lambda profiles: (profiles.trend.changed, profiles.trend.source_line),
    ),
    AgentQuestion(
        "Does batch 64 fit?",
        lambda reader: fits(reader, 64),
        lambda _: FIXED_BYTES + 64 * ITEM_BYTES <= LIMIT,
    ),
    AgentQuestion(
        "Which is the largest batch that fits, of those that were compiled?",
        lambda reader: reader.ask("fit", "fits")["largest"][0]["value"],
        lambda _: max(batch for batch in BATCHES if FIXED_BYTES + batch * ITEM_BYTES <= LIMIT),
    ),
)
