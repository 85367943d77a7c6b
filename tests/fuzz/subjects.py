"""The subjects of fuzzing: for each format its seeds, how inputs are changed, how they are tried, and the limits."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random

from fuzz import seeds
from fuzz.attempts.files import Attempt, FileAttempt
from fuzz.attempts.folders import attempt_folder
from fuzz.attempts.kept import (
    attempt_baseline,
    attempt_fit_cache,
    attempt_fleet_cache,
    attempt_kernel,
    attempt_mcp,
    attempt_uploads,
)
from fuzz.attempts.requests import attempt_request, server
from fuzz.attempts.small import attempt_fit_record, attempt_name, attempt_regex
from fuzz.mutators.json_text import mutate_json
from fuzz.mutators.pickles import mutate_pickle
from fuzz.mutators.plain import PLAIN, Mutator, any_of, mixed
from fuzz.mutators.protobuf import mutate_message
from fuzz.mutators.requests import folder_mutator, mutate_name, mutate_regex, request_mutator
from fuzz.mutators.text import text_mutator
from fuzz.mutators.watch import mutate_watch

from tb_memplugin.questions.asking.endpoint import endpoints
from tb_memplugin.readers.oom_text.messages import MESSAGES

REGRESSIONS = Path(__file__).parent / "regressions"


@dataclass(frozen=True)
class Subject:
    """One kind of input. `inputs` are tried in an ordinary test run."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    mutator: Callable[[Sequence[bytes]], Mutator]
    attempt: Attempt
    inputs: int

    def regressions(self) -> list[Path]:
        """Return the inputs that were faults once."""
        return sorted((REGRESSIONS / self.name).glob("*"))


def aware(mutator: Mutator, share: float = 0.7) -> Callable[[Sequence[bytes]], Mutator]:
    return partial(mixed, mutator, aware_share=share)


def in_gzip(mutator: Mutator) -> Mutator:
    """Return a mutator that changes the content of gzip files; what is no gzip file it changes as it is."""

    def mutate(data: bytes, rng: Random) -> bytes:
        try:
            content = zlib.decompress(data, 31)
        except zlib.error:
            return mutator(data, rng)
        return gzip.compress(mutator(content, rng), 1, mtime=0)

    return mutate


@cache
def oom_words() -> list[bytes]:
    return [message.example.encode() for message in MESSAGES]


def request_changes(known: Sequence[bytes]) -> Mutator:
    paths = [f"api/{route}".encode() for route in endpoints()] + [b"", b"index.html", b"api/", b"page.js"]
    values = [text.encode() for text in (*server().ids, *server().runs)]
    return mixed(request_mutator(paths, values), known, 0.9)


text = text_mutator(oom_words())
folder = folder_mutator(
    {b".pb": mutate_message, b".gz": in_gzip(mutate_message), b".json": mutate_json, b".pickle": mutate_pickle}, text
)

SUBJECTS = [
    Subject("xplane", seeds.xplane, aware(mutate_message), FileAttempt("/logs/x.xplane.pb"), 800),
    Subject("hlo", seeds.hlo, aware(mutate_message), FileAttempt("/logs/x.hlo_proto.pb"), 700),
    Subject("hlo_gz", seeds.compressed_hlo, aware(in_gzip(mutate_message)), FileAttempt("/logs/x.hlo.pb.gz"), 300),
    Subject("hlo_text", seeds.hlo_texts, aware(text), FileAttempt("/logs/x-buffer-assignment.txt"), 1000),
    Subject("pprof", seeds.pprof, aware(mutate_message), FileAttempt("/logs/x.prof"), 1500),
    Subject("pprof_gz", seeds.compressed_pprof, aware(in_gzip(mutate_message)), FileAttempt("/logs/x.pb.gz"), 1000),
    Subject("dump", seeds.folders, aware(folder), attempt_folder, 300),
    Subject("oom_text", seeds.oom_texts, aware(text), FileAttempt("/logs/x.oom.txt"), 2000),
    Subject("torch_pickle", seeds.torch_pickles, aware(mutate_pickle), FileAttempt("/logs/x.pickle"), 2000),
    Subject("torch_json", seeds.torch_json, aware(mutate_json), FileAttempt("/logs/x.snapshot.json"), 800),
    Subject("torch_trace", seeds.torch_traces, aware(mutate_json), FileAttempt("/logs/x.pt.trace.json"), 2000),
    Subject("torch_timeline", seeds.torch_timelines, aware(mutate_json), FileAttempt("/logs/x.memory.json"), 3000),
    Subject(
        "torch_raw_gz",
        seeds.compressed_timelines,
        aware(in_gzip(mutate_json)),
        FileAttempt("/logs/x.raw.json.gz"),
        2000,
    ),
    Subject("watch", seeds.watches, aware(mutate_watch), FileAttempt("/logs/x.watch"), 1500),
    Subject("fit_record", seeds.fit_records, aware(mutate_json), attempt_fit_record, 8000),
    Subject("request", seeds.requests, request_changes, attempt_request, 2000),
    Subject("regex", seeds.expressions, aware(mutate_regex), attempt_regex, 1000),
    Subject("name", seeds.names, aware(mutate_name), attempt_name, 1500),
    Subject("kernel", seeds.kernels, aware(any_of(PLAIN)), attempt_kernel, 4000),
    Subject("baseline", seeds.baselines, aware(mutate_json), attempt_baseline, 800),
    Subject("fit_cache", seeds.fit_caches, aware(any_of(PLAIN)), attempt_fit_cache, 1500),
    Subject("fleet_cache", seeds.fleet_caches, aware(any_of(PLAIN)), attempt_fleet_cache, 300),
    Subject("uploads", seeds.uploads, aware(mutate_json), attempt_uploads, 1000),
    Subject("mcp", seeds.messages, aware(mutate_json), attempt_mcp, 500),
]


def subject(name: str) -> Subject:
    return next(one for one in SUBJECTS if one.name == name)
