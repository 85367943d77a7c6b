"""Requests and errors of our page, separate from those of its host."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Request, WebError


class Watch:
    """Listener to every page of a context. `ours` matches our URLs, and stack traces that contain them."""

    def __init__(self, context: BrowserContext, ours: re.Pattern[str]) -> None:
        self.ours = ours
        self.requests: list[str] = []
        self.problems: list[str] = []
        context.on("request", self._request)
        context.on("console", self._console)
        context.on("weberror", self._error)

    def take(self) -> list[str]:
        """Return the distinct problems since the last call."""
        assert self.requests, "no request of our page was seen: the watch does not work"
        found, self.problems = list(dict.fromkeys(self.problems)), []
        return found

    def _request(self, request: Request) -> None:
        try:
            frame = request.frame
        except Error:  # the request is for a page that does not exist yet
            return
        source, target = urlsplit(frame.url), urlsplit(request.url)
        if source.scheme != "http" or not self.ours.search(frame.url):
            return
        self.requests.append(request.url)
        if target.scheme not in ("data", "blob") and (target.scheme, target.netloc) != (source.scheme, source.netloc):
            self.problems.append(f"request to another origin: {request.url}")

    def _console(self, message: ConsoleMessage) -> None:
        """Record errors and warnings. Some tests cause 404s on purpose, so those are not problems."""
        source = str(message.location.get("url", ""))
        wrong = message.type in ("error", "warning") and "Failed to load resource" not in message.text
        if wrong and self.ours.search(source):
            self.problems.append(f"{message.type} on the console: {message.text} ({source})")

    def _error(self, error: WebError) -> None:
        trace = error.error.stack or error.error.message
        if self.ours.search(trace):
            self.problems.append(f"uncaught: {trace}")
