"""The build of the compiled modules with sanitizers: run by fuzz.sanitizers, in a copy of the repository.

The project's own setup.py optimizes, which takes six times as long with sanitizers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.native_build import DIRECTIVES, MACROS, sources

FLAGS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def main() -> None:
    modules = [
        Extension(
            ".".join(source.with_suffix("").parts),
            [str(source)],
            language="c++",
            extra_compile_args=[*FLAGS, "-O0", "-g1", "-std=c++17"],
            extra_link_args=FLAGS,
            define_macros=MACROS,
            py_limited_api=True,
        )
        for source in sources(Path())
    ]
    built = cythonize(modules, build_dir="build/cython", compiler_directives=DIRECTIVES, quiet=True)
    setup(name="sanitized", packages=[], ext_modules=built, script_args=sys.argv[1:])


if __name__ == "__main__":
    main()
