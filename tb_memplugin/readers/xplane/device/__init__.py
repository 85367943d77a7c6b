"""Device planes: memory size and executed programs."""
