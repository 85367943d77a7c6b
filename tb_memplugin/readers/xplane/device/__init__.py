"""Device planes of a profile: memory size and executed programs."""
