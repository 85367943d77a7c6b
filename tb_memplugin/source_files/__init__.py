"""Lines of source files that profiles name, read below chosen folders only."""

from tb_memplugin.source_files.lines import SourceFiles
from tb_memplugin.source_files.roots import VARIABLE, checked_roots, roots_of_environment

__all__ = ["VARIABLE", "SourceFiles", "checked_roots", "roots_of_environment"]
