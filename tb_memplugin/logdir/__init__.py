"""Runs and files in a logdir: names, sizes and contents. Nothing is ever written to a logdir.

- runs: the search for runs
- folders: listing of local folders, and of remote ones by fsspec
- files, remote_files: one file, its host name and its bytes, read locally or by ranges
- parts: the parts of a large file that its reader needs, or its end, and the count of bytes while they are read
- dumps: the programs of an XLA dump folder
- names: names of profiles, of files in an XLA dump folder, and questions about paths
"""

from tb_memplugin.logdir.dumps import dumped_file, listed_names, without_program
from tb_memplugin.logdir.files import (
    HostFile,
    ProgramFile,
    Stages,
    host_file,
    read_beside,
    read_bytes,
    read_content,
    with_texts,
)
from tb_memplugin.logdir.names import is_flat_store, is_inside, is_program, is_read_with, is_remote, path_text
from tb_memplugin.logdir.parts import counting
from tb_memplugin.logdir.runs import Run, find_all, find_runs, has_runs, links_text, list_again, newest_first, no_runs

__all__ = [
    "HostFile",
    "ProgramFile",
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
    "links_text",
    "list_again",
    "listed_names",
    "newest_first",
    "no_runs",
    "path_text",
    "read_beside",
    "read_bytes",
    "read_content",
    "with_texts",
    "without_program",
]
