"""Buffer lifetimes on the flattened schedule of a compiled program."""
