"""PyTorch snapshots: plain pickles, and the sizes of cached blocks."""
