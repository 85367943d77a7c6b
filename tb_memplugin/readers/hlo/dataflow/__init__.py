"""Values of a compiled program: uses, derivations, arguments and results."""
