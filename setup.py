"""Builds the two things a wheel carries that are not in the repository: the compiled loops and the page.

The rest of the package is described in pyproject.toml.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Command, Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

ROOT = Path(__file__).resolve().parent
FRONTEND = ROOT / "frontend"
STATIC = ROOT / "tb_memplugin" / "static"
SKIP_FRONTEND = "TB_MEMPLUGIN_SKIP_FRONTEND"


def extensions() -> list[Extension]:
    """One C++ extension for each .pyx below tb_memplugin/native."""
    sources = sorted((ROOT / "tb_memplugin" / "native").rglob("*.pyx"))
    # Every supported target of MSVC optimises by default; gcc and clang are told to.
    flags = [] if sys.platform == "win32" else ["-O3", "-std=c++17", "-g0"]
    modules = [
        Extension(
            ".".join(source.relative_to(ROOT).with_suffix("").parts),
            [str(source.relative_to(ROOT))],
            language="c++",
            extra_compile_args=flags,
        )
        for source in sources
    ]
    built: list[Extension] = cythonize(
        modules, build_dir="build/cython", compiler_directives={"language_level": 3}, quiet=True
    )
    return built


class BuildExt(build_ext):
    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except (CCompilerError, ExecError, PlatformError) as error:
            raise SystemExit(
                f"tb-memplugin: the compiled loops could not be built: {error}\n"
                "A C++17 compiler and Python's headers are needed (Debian: apt-get install g++ python3-dev); "
                "a wheel needs neither."
            ) from error


def page_is_current() -> bool:
    """Whether static/ is newer than all it is built from; an sdist has no sources and always is."""
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
    """Part of `build`, before the package's files are gathered; for editable installations too."""

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
    cmdclass={"build": Build, "build_ext": BuildExt, "build_frontend": BuildFrontend},
)
