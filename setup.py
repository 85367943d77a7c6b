"""Build steps for the two parts of a wheel that are not in the repository: the compiled modules and the page.

pyproject.toml describes the rest of the package.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Command, Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # which builds in an environment of their own leave out
from tools.native_build import DIRECTIVES, MACROS, sources, write_stubs  # noqa: E402

FRONTEND = ROOT / "frontend"
STATIC = ROOT / "tb_memplugin" / "static"
SKIP_FRONTEND = "TB_MEMPLUGIN_SKIP_FRONTEND"

# One wheel serves Python 3.11 and later; docs/packaging.md has the cost. Free-threaded Python has no limited API.
LIMITED_API = not sysconfig.get_config_var("Py_GIL_DISABLED")


def extensions() -> list[Extension]:
    """Return one C++ extension for each .pyx below tb_memplugin/native, and write their type stubs."""
    write_stubs(ROOT)
    # MSVC optimizes by default.
    flags = [] if sys.platform == "win32" else ["-O3", "-std=c++17", "-g0"]
    modules = [
        Extension(
            ".".join(source.relative_to(ROOT).with_suffix("").parts),
            [str(source.relative_to(ROOT))],
            language="c++",
            extra_compile_args=flags,
            define_macros=MACROS if LIMITED_API else [],
            py_limited_api=LIMITED_API,
        )
        for source in sources(ROOT)
    ]
    built: list[Extension] = cythonize(modules, build_dir="build/cython", compiler_directives=DIRECTIVES, quiet=True)
    return built


class BuildExt(build_ext):
    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or True  # one compiler per core

    def copy_extensions_to_source(self) -> None:
        """Copy the modules beside their sources, without older ones of another suffix, which Python would prefer."""
        for extension in self.extensions:
            built = Path(self.get_ext_fullpath(extension.name))
            for older in built.parent.glob(f"{built.name.partition('.')[0]}.*{built.suffix}"):
                older.unlink()
        super().copy_extensions_to_source()

    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except (CCompilerError, ExecError, PlatformError) as error:
            raise SystemExit(
                f"tb-memplugin: the compiled modules could not be built: {error}\n"
                "A C++17 compiler and Python's headers are needed (Debian: apt-get install g++ python3-dev); "
                "a wheel needs neither."
            ) from error


def page_is_current() -> bool:
    """Return whether static/ is newer than all of its sources."""
    page = STATIC / "index.html"
    if not page.exists():
        return False
    built = page.stat().st_mtime
    skipped = {"node_modules", "coverage"}
    for folder, folders, files in os.walk(FRONTEND):
        folders[:] = [name for name in folders if name not in skipped]
        if any((Path(folder) / name).stat().st_mtime > built for name in files):
            return False
    return True


def npm(*arguments: str) -> None:
    program = shutil.which("npm")
    if program is None:
        raise SystemExit(
            "tb-memplugin: npm was not found, and the page is built with it. Install Node.js 20 or later, "
            f"or set {SKIP_FRONTEND}=1 for an installation with the command line only."
        )
    try:
        subprocess.run([program, *arguments], cwd=FRONTEND, check=True)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"tb-memplugin: `npm {' '.join(arguments)}` failed in {FRONTEND}; see above.") from error


class BuildFrontend(Command):
    """Builds the page before the package's files are collected, for editable installations too."""

    description = "build the page with npm"
    user_options: list[tuple[str, str | None, str]] = []  # noqa: RUF012 (the type that setuptools declares)
    editable_mode = False

    def initialize_options(self) -> None: ...

    def finalize_options(self) -> None: ...

    def run(self) -> None:
        if os.environ.get(SKIP_FRONTEND, "0") not in ("", "0") or page_is_current():
            return
        installed, locked = FRONTEND / "node_modules" / ".package-lock.json", FRONTEND / "package-lock.json"
        if not installed.exists() or installed.stat().st_mtime < locked.stat().st_mtime:
            npm("ci")
        npm("run", "build")

    def get_source_files(self) -> list[str]:
        return []

    def get_outputs(self) -> list[str]:
        return []

    def get_output_mapping(self) -> dict[str, str]:
        return {}


class Build(build):
    sub_commands = [("build_frontend", None), *build.sub_commands]  # noqa: RUF012 (as above)


setup(
    ext_modules=extensions(),
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED_API else {},
    cmdclass={"build": Build, "build_ext": BuildExt, "build_frontend": BuildFrontend},
)
