"""What our page asked for and complained of, told apart from the host's own."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Request, WebError


class Watch:
    """Listens to every page of a context. `ours` finds our URLs, and traces that name them."""

    def __init__(self, context: BrowserContext, ours: re.Pattern[str]) -> None:
        self.ours = ours
        self.requests: list[str] = []
        self.problems: list[str] = []
        context.on("request", self._request)
        context.on("console", self._console)
        context.on("weberror", self._error)

    def take(self) -> list[str]:
        """The problems since the last time, each once."""
        assert self.requests, "no request of our page was seen: this watch is blind"
        found, self.problems = list(dict.fromkeys(self.problems)), []
        return found

    def _request(self, request: Request) -> None:
        try:
            frame = request.frame
        except Error:  # asks for a page that is not there yet
            return
        asking, asked = urlsplit(frame.url), urlsplit(request.url)
        if asking.scheme != "http" or not self.ours.search(frame.url):
            return
        self.requests.append(request.url)
        if asked.scheme not in ("data", "blob") and (asked.scheme, asked.netloc) != (asking.scheme, asking.netloc):
            self.problems.append(f"asked another origin: {request.url}")

    def _console(self, message: ConsoleMessage) -> None:
        """Refusals of a content security policy are among these. Answers of 404 are too, and some tests ask for one."""
        source = str(message.location.get("url", ""))
        wrong = message.type in ("error", "warning") and "Failed to load resource" not in message.text
        if wrong and self.ours.search(source):
            self.problems.append(f"{message.type} on the console: {message.text} ({source})")

    def _error(self, error: WebError) -> None:
        trace = error.error.stack or error.error.message
        if self.ours.search(trace):
            self.problems.append(f"uncaught: {trace}")
