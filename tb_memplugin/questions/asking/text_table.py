"""Tables of aligned text and bars for a terminal."""

from collections.abc import Sequence

WIDTH = 10


def bar_text(done: int, total: int) -> str:
    """Return a bar of progress."""
    filled = WIDTH * done // max(total, 1)
    return f"[{'#' * filled}{'-' * (WIDTH - filled)}]"


def align(lines: Sequence[Sequence[str]], numeric_columns: int) -> list[str]:
    """Pad cells to the width of their columns; the first `numeric_columns` columns are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i < numeric_columns else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
