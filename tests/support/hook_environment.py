"""A separate virtual environment for tests of the hook, which shares this environment's packages."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from support.servers import REPOSITORY


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of its Python and its `xprof`."""
    root = tmp_path_factory.mktemp("environment")
    venv.create(root, symlinks=True, with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = root / "lib" / version / "site-packages"
    # addsitedir also reads the .pth files there, such as those of editable installations. Sorted after our hook's.
    here = sysconfig.get_path("purelib")
    (packages / "zz_packages.pth").write_text(f"import site; site.addsitedir({here!r})\n{REPOSITORY}\n")
    program = root / "bin" / "xprof"
    program.write_text(f"#!{root}/bin/python\nimport sys\nfrom xprof.cli.xprof_cli import main\nsys.exit(main())\n")
    program.chmod(0o755)
    return root / "bin"


def command(environment: Path, action: str) -> str:
    done = subprocess.run(
        [environment / "python", "-m", "tb_memplugin.cli", "hook", action], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
