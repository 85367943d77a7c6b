"""Buffer lifetimes of compiled programs."""
