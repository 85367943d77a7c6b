"""Changes to a program before it is compiled, and what carries them out."""
