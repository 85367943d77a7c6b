"""The parts of XProf that hosts/xprof.py uses. After a failure, read XProf's changes.

As a program, it checks the XProf that it finds: `python -m support.xprof_contract`.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from tb_memplugin.hosts import xprof, xprof_server

LANDMARKS = (
    "mat-sidenav-content",
    "view_memory_allocation_timeline",
    '"memory_viewer"',
    "pushState",
    "navigateToSyncWithBrowser",  # the router, which reads the URL at popstate
    "navigateWithUrl",  # the sidebar, after each navigation of the router
)


def check() -> None:
    from xprof import profile_plugin, server

    assert xprof.version().startswith(xprof.TESTED)
    assert list(inspect.signature(server.make_wsgi_app).parameters) == ["plugin"]
    assert "make_wsgi_app(plugin)" in inspect.getsource(server.run_server)
    assert list(inspect.signature(server.main).parameters) == ["argv"]
    assert xprof_server._has_known_server(server)
    launch = inspect.getsource(server._launch_server)
    for landmark in ("run_server(plugin, ", "_pywrap_profiler_plugin.start_grpc_server(", "initialize_stubs("):
        assert landmark in launch
    assert "self.logdir = context.logdir" in inspect.getsource(profile_plugin.ProfilePlugin.__init__)
    page = (Path(server.__file__).parent / "static" / "index.html").read_text()
    assert page.index("<base") if "<base" in page else 'createElement("base")' in page
    assert page.count("</head>") == 1
    bundle = (Path(server.__file__).parent / "static" / "bundle.js").read_text()
    for landmark in LANDMARKS:
        assert landmark in bundle, landmark


if __name__ == "__main__":
    check()
    print(xprof.version())
