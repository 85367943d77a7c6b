"""The built page: the files that vite writes to tb_memplugin/static."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from werkzeug.wrappers import Response

from tb_memplugin.hosts.http_messages import Finished

FOLDER = Path(__file__).resolve().parent.parent / "static"

# Only own scripts and workers. Charts are positioned by inline styles; exported pictures are data: and blob: images.
# XProf, and proxies such as JupyterLab's, show the page in a frame of their own origin. The document of
# TensorBoard's tab is TensorBoard's own, so that Colab and VS Code can embed it.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; worker-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; base-uri 'self'; form-action 'none'; "
    "frame-ancestors 'self'"
)

# All types of files that vite writes. The module mimetypes reads the machine's lists, which takes longer than a small
# run, and a machine may map .js to text/plain, which browsers do not run as a module.
CONTENT_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}

NOT_BUILT = (
    "<!doctype html><meta charset=utf-8><title>tb-memplugin</title><p>The page has not been built. Run "
    "<code>pip install .</code> in tb-memplugin's folder (it needs Node.js 20), then start this server again."
)


def names(folder: Path = FOLDER) -> set[str]:
    """Return the paths of all files of the page; `index.html` is included even if the page is not built."""
    return {"index.html", *_built(folder)}


def response(name: str, folder: Path = FOLDER) -> Finished | Response:
    """Return a file of the page. `name` must be one of names(): paths of requests are never joined to a folder."""
    return _built(folder).get(name) or Response(NOT_BUILT, 503, _headers("index.html"))


def _built(folder: Path) -> dict[str, Finished]:
    """Return all files of the page, read again after it is built again."""
    return _read_files(folder, tuple(_stamp(f"{folder}/{name}") for name in ("", "assets", "index.html", "index.js")))


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)
def _read_files(folder: Path, stamps: tuple[tuple[int, int], ...]) -> dict[str, Finished]:
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: Finished(path.read_bytes(), _headers(name)) for name, path in paths.items()}


def _headers(name: str) -> list[tuple[str, str]]:
    suffix = Path(name).suffix
    headers = [("Content-Type", CONTENT_TYPES.get(suffix, "application/octet-stream"))]
    return [*headers, ("Content-Security-Policy", CONTENT_SECURITY_POLICY)] if suffix == ".html" else headers
