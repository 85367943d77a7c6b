"""Contents of a snapshot file: pickled values, traces, segments, stacks and annotations."""
