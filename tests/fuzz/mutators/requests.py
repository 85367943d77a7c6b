"""Changes of requests, folders, regular expressions and names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from urllib.parse import quote_from_bytes, unquote_to_bytes

from fuzz.attempts.folders import pack, unpack
from fuzz.mutators.plain import Mutator

VALUES = [
    b"", b"0", b"1", b"-1", b"2", b"00", b"1.5", b"1e9", b"9223372036854775808", b"9" * 5000, b"\xd9\xa3", b" 1",
    b"1_0", b"nan", b"None",
    b"../../etc/passwd", b"/etc/passwd", b"%00", b"\0", b"\xff", b"\xed\xa0\x80", b"<script>", b"a" * 3000, b"%",
    b"||", b"|", b"source", b"role",
    b"(", b"(\\w|\\w){25}!", b"(a+)+$", b".*" * 100, b"[", b"\\", b"(?P<a>x)", b"(?i)x", b"x{1000}", b"\\p{L}",
]  # fmt: skip
METHODS = [b"GET", b"GET", b"GET", b"HEAD", b"POST", b"PUT", b"OPTIONS", b"DELETE", b"", b"get", b"TRACE", b"G\0T"]
HEADERS = [
    b"Accept-Encoding: gzip", b"Accept-Encoding: gzip;q=x", b"Accept-Encoding: *;q=0",
    b"Accept-Encoding: gzip;q=1e999", b"If-None-Match: *",
    b'If-None-Match: W/"x', b"If-Modified-Since: x", b"Range: bytes=0-1", b"Range: bytes=-", b"Range: bytes=9-1,x",
    b"Host: evil.example",
    b"Host:", b"Host: [::1", b"Host: [::1]:8791", b"Host: localhost:99999", b"Host: 127.0.0.1", b"Host: a\x01b",
    b"Origin: http://evil.example",
    b"Origin: null", b"Origin: http://[", b"Origin: http://localhost:8791", b"Sec-Fetch-Site: same-origin",
    b"Sec-Fetch-Site: cross-site",
    b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: x", b"Content-Length: 99999999999999999999",
    b"Content-Length: \xd9\xa3",
    b"Content-Type: application/json", b"Content-Type: multipart/form-data; boundary=", b"Transfer-Encoding: chunked",
    b"Cookie: a=b; =",
    b"X-Forwarded-Host: x", b"X-Forwarded-Prefix: /x", b"Authorization: Basic x", b"Forwarded: for=1", b"Accept: */*",
]  # fmt: skip


def request_mutator(paths: Sequence[bytes], values: Sequence[bytes]) -> Mutator:
    """Return a mutator of requests that knows the `paths` and some valid `values` of parameters."""

    def mutate(data: bytes, rng: Random) -> bytes:
        head, blank, body = data.partition(b"\n\n")
        first, *headers = head.split(b"\n")
        method, _, target = first.partition(b" ")
        path, _, query = target.partition(b"?")
        pairs = [pair.partition(b"=")[::2] for pair in query.split(b"&")]
        kind = rng.randrange(8)
        if kind == 0:
            path = b"/" + rng.choice(paths)
        elif kind == 1:
            method = rng.choice(METHODS)
        elif kind == 2:
            headers.insert(rng.randrange(len(headers) + 1), rng.choice(HEADERS))
        elif kind == 3:
            body = body[: rng.randrange(len(body) + 1)] + rng.choice(VALUES)
            headers.append(b"Content-Length: %d" % len(body))
        elif kind == 4:
            path = (
                rng.choice((b"/a/b", b"//", b"/..", b"/%2e%2e", b"/\xff", b""))
                + path
                + rng.choice((b"", b"/", b"%00", b"/x"))
            )
        else:
            pairs = _pairs(pairs, values, rng)
        query = b"&".join(name + b"=" + value for name, value in pairs if name or value)
        first = method + b" " + path + (b"?" + query if query else b"")
        return b"\n".join([first, *headers]) + (b"\n\n" + body if body or blank else b"")

    return mutate


def _pairs(pairs: list[tuple[bytes, bytes]], values: Sequence[bytes], rng: Random) -> list[tuple[bytes, bytes]]:
    """Change one parameter: another value, a damaged one, none, or the same name twice."""
    at = rng.randrange(len(pairs))
    name, value = pairs[at]
    match rng.randrange(6):
        case 0:
            return pairs[:at] + pairs[at + 1 :] or [(b"", b"")]
        case 1:
            return [*pairs, (name, quote_from_bytes(rng.choice(VALUES)).encode())]
        case 2:
            raw = bytearray(unquote_to_bytes(value) or b"\0")
            raw[rng.randrange(len(raw))] = rng.randrange(256)
            value = quote_from_bytes(bytes(raw)).encode()
        case 3:
            value = quote_from_bytes(rng.choice(values)).encode()
        case _:
            value = quote_from_bytes(rng.choice(VALUES)).encode()
    return [*pairs[:at], (name, value), *pairs[at + 1 :]]


def folder_mutator(by_suffix: Mapping[bytes, Mutator], default: Mutator) -> Mutator:
    """Return a mutator of folders that changes one file by the mutator of its suffix, or the names."""

    def mutate(data: bytes, rng: Random) -> bytes:
        files = unpack(data)
        if not files:
            return data
        name = rng.choice(list(files))
        content = files[name]
        match rng.randrange(8):
            case 0 if len(files) > 1:
                del files[name]
            case 1:
                files[default(name, rng).replace(b"\0", b"")[:200]] = files.pop(name)
            case 2:
                files[name] = rng.choice(list(files.values()))
            case 3:
                files[name] = b""
            case _:
                change = next((by_suffix[end] for end in by_suffix if name.endswith(end)), default)
                files[name] = change(content or b"\0", rng)
        return pack(files)

    return mutate


ATOMS = [
    b".", b"\\w", b"\\W", b"\\d", b"\\b", b"\\B", b"[a-z]", b"[^a]", b"[]", b"[[:alpha:]]", b"a", b"main", b"_",
    b"\\", b"\\1", b"\\Q", b"\\E",
    b"(?i)", b"(?:", b"(", b")", b"(?P<n>", b"(?=", b"(?!", b"(?<=", b"|", b"^", b"$", b"\\A", b"\\z", b"\\Z",
    b"\\pL", b"\\p{Greek}", b"\\x{10FFFF}",
    b"\\C", b"\\u1234", b"\xc3\xa9", b"\xff", b"\0", b"\xed\xa0\x80", b"{", b"}", b"]", b"(?s-m:", b"(?#", b"[a-",
    b"[z-a]",
]  # fmt: skip
REPEATS = [
    b"*",
    b"+",
    b"?",
    b"{2}",
    b"{25}",
    b"{40}",
    b"{,3}",
    b"{1000}",
    b"{1001}",
    b"{99999999999}",
    b"*?",
    b"++",
    b"{0}",
    b"{1,0}",
]
PART = re.compile(rb"\\.|\[[^\]]*\]|\{\d*,?\d*\}|.", re.DOTALL)


def mutate_regex(data: bytes, rng: Random) -> bytes:
    """Change one part of a regular expression, or put a part into a repeated group."""
    parts = PART.findall(data) or [b""]
    at = rng.randrange(len(parts))
    match rng.randrange(6):
        case 0:
            del parts[at]
        case 1:
            parts.insert(at, rng.choice(REPEATS))
        case 2:
            end = min(len(parts), at + rng.randrange(1, 8))
            parts[at:end] = [b"(", *parts[at:end], b")", rng.choice(REPEATS)]
        case 3:
            parts *= rng.choice((2, 2, 5, 30))
        case _:
            parts.insert(at, rng.choice(ATOMS))
    return b"".join(parts)


NAME_PARTS = [
    b"..", b".", b"/", b"//", b"\\", b" ", b"|", b"%", b"%2F", b"\n", b"\r", b"\t", b"\x1b[31m", b"\xff",
    b"\xed\xa0\x80", b"\xc3\xa9", b"\xe2\x80\xae",
    b"<b>", b"&", b"?", b"#", b"=", b'"', b"'", b"$(x)", b"-", b"--help", b"con", b"a" * 150, b"module_0001.",
    b"jit_f", b"after_optimizations.hlo.pb",
    b".hlo.pb", b".hlo_proto.pb", b".hlo.pb.gz", b".xplane.pb", b".prof", b".oom.txt", b".pickle", b".snapshot.json",
    b".memory.json", b".gz",
    b".pt.trace.json", b"plugins", b"profile", b"fit.json", b"topology.pb", b"sm_9.0_gpu_",
    b"before_optimizations.txt", b"99999999999999999999.",
]  # fmt: skip


def mutate_name(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(4):
        case 0:
            return data[:at] + data[at + rng.randrange(1, 8) :]
        case 1:
            return data[:at] + data[:at]
        case _:
            return data[:at] + rng.choice(NAME_PARTS) + data[at:]
