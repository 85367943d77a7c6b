"""The built page: the files that vite writes to tb_memplugin/static."""

from __future__ import annotations

import mimetypes
from functools import cache
from pathlib import Path

from werkzeug.wrappers import Response

FOLDER = Path(__file__).resolve().parent.parent / "static"

# Only own scripts and workers. Charts are positioned by inline styles; exported pictures are data: and blob: images.
# XProf, and proxies such as JupyterLab's, show the page in a frame of their own origin. The document of
# TensorBoard's tab is TensorBoard's own, so that Colab and VS Code can embed it.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; worker-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; base-uri 'self'; form-action 'none'; "
    "frame-ancestors 'self'"
)

# A machine's registry may map .js to text/plain, which browsers do not run as a module.
CONTENT_TYPES = {".js": "text/javascript; charset=utf-8", ".html": "text/html; charset=utf-8"}

NOT_BUILT = (
    "<!doctype html><meta charset=utf-8><title>tb-memplugin</title><p>The page has not been built. Run "
    "<code>pip install .</code> in tb-memplugin's folder (it needs Node.js 20), then start this server again."
)


def names(folder: Path = FOLDER) -> list[str]:
    """Return the paths of all files of the page; `index.html` is included even if the page is not built."""
    built = [str(path.relative_to(folder).as_posix()) for path in sorted(folder.rglob("*")) if path.is_file()]
    return sorted({"index.html", *built})


def response(name: str, folder: Path = FOLDER) -> Response:
    """Return a file of the page. `name` must be one of names(): paths of requests are never joined to a folder."""
    path = folder / name
    if not path.is_file():
        return page(NOT_BUILT, 503)
    body = path.read_bytes()
    if path.suffix == ".html":
        return page(body)
    content_type = CONTENT_TYPES.get(path.suffix) or _guess(path.suffix)
    return Response(body, content_type=content_type)


def page(html: str | bytes, status: int = 200) -> Response:
    answer = Response(html, status, content_type=CONTENT_TYPES[".html"])
    answer.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return answer


@cache
def _guess(suffix: str) -> str:
    return mimetypes.guess_type(f"file{suffix}")[0] or "application/octet-stream"
