"""The hook: two start-up files in this environment that make the plain `xprof` command show our page.

Python reads start-up files in every process, so ours only check the program's name. They name this module, which
imports little until it knows that the program is `xprof`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from pathlib import Path
    from types import ModuleType

OFF_SWITCH = "TB_MEMPLUGIN_HOOK"  # "0" leaves XProf as it is
NAME = "tb_memplugin_hook"
SERVER = "xprof.server"

# Python runs this .pth line. It imports tb_memplugin only in a program named xprof, and does nothing after it has been
# uninstalled.
PTH = (
    "import sys; "
    "exec('try:\\n from tb_memplugin.hosts.hook import start; start()\\nexcept ImportError: pass') "
    "if next((a for a in sys.orig_argv[1:] if a[:1] != '-'), '').replace('\\\\', '/').rpartition('/')[2] "
    "in ('xprof', 'xprof.exe') else None\n"
)
# Python 3.15 and later replace such lines by files that name a callable (PEP 829).
START = "tb_memplugin.hosts.hook:start\n"


def install() -> str:
    """Write the start-up files; return a message for the user."""
    from tb_memplugin.errors import InputError

    try:
        for path, text in _files().items():
            path.write_text(text)
    except OSError as error:
        raise InputError("Cannot install the hook", str(error.filename), str(error.strerror)) from error
    return (
        f"Installed in {_folder()}. The plain `xprof` command of this environment now shows tb-memplugin.\n"
        f"{OFF_SWITCH}=0 switches it off for one command, `tb-memplugin hook remove` for good."
    )


def status() -> str:
    found = [str(path) for path in _files() if path.exists()]
    if not found:
        return "Not installed: `xprof` is unchanged."
    off = f" Switched off here by {OFF_SWITCH}=0." if os.environ.get(OFF_SWITCH) == "0" else ""
    return f"Installed: {', '.join(found)}.{off}"


def remove() -> str:
    """Delete the start-up files; return a message for the user."""
    from tb_memplugin.errors import InputError

    found = [path for path in _files() if path.exists()]
    try:
        for path in found:
            path.unlink()
    except OSError as error:
        raise InputError("Cannot remove the hook", str(error.filename), str(error.strerror)) from error
    return f"Removed from {_folder()}." if found else "Not installed: nothing to remove."


def _files() -> dict[Path, str]:
    folder = _folder()
    return {folder / f"{NAME}.pth": PTH, folder / f"{NAME}.start": START}


def _folder() -> Path:
    import sysconfig
    from pathlib import Path

    return Path(sysconfig.get_path("purelib"))


def start() -> None:
    """Prepare for the import of XProf's server. Python calls this at start-up in a process of `xprof`."""
    program = next((argument for argument in sys.orig_argv[1:] if not argument.startswith("-")), "")
    name = program.replace("\\", "/").rpartition("/")[2]
    if name not in ("xprof", "xprof.exe") or os.environ.get(OFF_SWITCH) == "0":
        return
    if not any(isinstance(finder, _WhenImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenImported())


class _WhenImported:
    """A finder that adds our page to xprof.server when it is imported."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != SERVER:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _install_in(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _install_in(server: ModuleType) -> None:
    """Add our page. If that fails, XProf starts without it."""
    try:
        from tb_memplugin.hosts import xprof

        xprof.install(server)
    except Exception as error:
        print(f"tb-memplugin: XProf runs without it: {error}", file=sys.stderr)
