"""TensorBoard's "Memory" tab.

TensorBoard imports this module when it starts, and an exception here would keep it from starting. So our other
modules are imported in load(): TensorBoard logs its failures and continues.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

try:
    from tensorboard.plugins import base_plugin
except ImportError:  # a tool that lists entry points imports this module, too
    from types import SimpleNamespace

    base_plugin = SimpleNamespace(TBLoader=object, TBPlugin=object)

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

NAME = "memory"
# TensorBoard's page waits for this answer. A local logdir takes milliseconds, a remote one may take minutes.
ACTIVE_WAIT_SECONDS = 1.0


class MemoryPluginLoader(base_plugin.TBLoader):  # type: ignore[misc]
    def load(self, context: Any) -> MemoryPlugin:
        from tb_memplugin.hosts.xprof_link import add_link

        add_link()
        return MemoryPlugin(context)


class MemoryPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    plugin_name = NAME

    def __init__(self, context: Any) -> None:
        from tb_memplugin.catalog.catalog import Catalog
        from tb_memplugin.hosts.api import MemoryApp

        self._roots = roots(context)
        self._app = _on_loopback(MemoryApp(Catalog(self._roots)).mounted(f"/data/plugin/{NAME}"), context.flags)
        self._active = threading.Event()
        self._search: threading.Thread | None = None

    def get_plugin_apps(self) -> Mapping[str, WSGIApplication]:
        from tb_memplugin.hosts.http_messages import with_headers

        return {"/*": with_headers(self._app, always_typed)}

    def is_active(self) -> bool:
        """Return whether the logdir contains a profile; False while a slow logdir is still being searched."""
        if not self._active.is_set() and (self._search is None or not self._search.is_alive()):
            self._search = threading.Thread(target=self._look, name="memory-is-active", daemon=True)
            self._search.start()
            self._search.join(ACTIVE_WAIT_SECONDS)
        return self._active.is_set()

    def _look(self) -> None:
        from tb_memplugin.logdir import has_runs

        if any(has_runs(root) for root in self._roots.values()):
            self._active.set()

    def frontend_metadata(self) -> Any:
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="Memory", disable_reload=True)


def _on_loopback(app: WSGIApplication, flags: Any) -> WSGIApplication:
    """Check the names in requests for data while TensorBoard listens on loopback; on others its names are unknown."""
    from tb_memplugin.hosts.serving.addresses import VARIABLE, ProxiedNames, checked, is_loopback

    if (
        flags is None
        or getattr(flags, "bind_all", False)
        or not is_loopback(getattr(flags, "host", None) or "localhost")
    ):
        return app
    names = ProxiedNames()

    def accepts(environ: WSGIEnvironment) -> bool:
        return "/api/" not in environ.get("PATH_INFO", "") or names.accepts(environ)

    return checked(
        app, accepts, f"if you know this name, start TensorBoard with {VARIABLE}={{name}} in its environment"
    )


def always_typed(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Add a Content-Type where there is none: TensorBoard requires it even for 304 Not Modified."""
    is_typed = any(name.lower() == "content-type" for name, _ in headers)
    return headers if is_typed else [*headers, ("Content-Type", "text/plain")]


def roots(context: Any) -> dict[str, str]:
    """Return logdirs by the prefix of their runs: one without a prefix, or those of --logdir_spec=name:path,path."""
    if context.logdir:
        return {"": context.logdir}
    spec = getattr(context.flags, "logdir_spec", "") or ""
    named = {}
    for part in filter(None, spec.split(",")):
        name, colon, path = part.partition(":")
        # `gs://bucket` has a colon, too, but no name.
        is_named = bool(colon) and not path.startswith("//") and "/" not in name
        path = path if is_named else part
        named[name if is_named else path.strip("/")] = path
    return named
