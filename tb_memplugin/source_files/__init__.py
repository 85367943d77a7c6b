"""Lines of source files that profiles name, read below chosen folders only."""

from tb_memplugin.source_files.lines import CodeLines, SourceFiles
from tb_memplugin.source_files.roots import VARIABLE, checked_roots, roots_of_environment

__all__ = ["VARIABLE", "CodeLines", "SourceFiles", "checked_roots", "roots_of_environment"]
