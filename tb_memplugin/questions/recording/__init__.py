"""Questions about any recording: summary, rows, usage, trees, details, advice."""
