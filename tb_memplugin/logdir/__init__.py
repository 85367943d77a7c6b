"""Runs and files in a logdir: names, sizes and contents. Nothing is ever written to a logdir.

- runs: the search for runs
- folders: listing of folders
- files: one file, its host name and its bytes
- local: reading of local files
- parts: the parts of a large file that its reader needs
- dumps: the programs of an XLA dump folder
- dump_names: names of the files in an XLA dump folder
- remote: listing and reading of remote logdirs, by fsspec
- counting: the bytes that are read, while they are read
- suffixes: which files are profiles, by their names
- paths: questions about paths
"""

from __future__ import annotations

from tb_memplugin.logdir.counting import counting
from tb_memplugin.logdir.dumps import FLAGS, dumped_file, listed_names, without_program
from tb_memplugin.logdir.files import DumpedProgram, HostFile, Stages, host_file, read_beside, read_bytes, read_content
from tb_memplugin.logdir.paths import is_flat_store, is_inside, is_read_with, is_remote, path_text
from tb_memplugin.logdir.runs import Run, find_all, find_runs, has_runs, list_again, newest_first, no_runs
from tb_memplugin.logdir.suffixes import is_program

__all__ = [
    "FLAGS",
    "DumpedProgram",
    "HostFile",
    "Run",
    "Stages",
    "counting",
    "dumped_file",
    "find_all",
    "find_runs",
    "has_runs",
    "host_file",
    "is_flat_store",
    "is_inside",
    "is_program",
    "is_read_with",
    "is_remote",
    "list_again",
    "listed_names",
    "newest_first",
    "no_runs",
    "path_text",
    "read_beside",
    "read_bytes",
    "read_content",
    "without_program",
]
