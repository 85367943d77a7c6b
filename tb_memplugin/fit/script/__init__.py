"""Scripts that are compiled as they are, in place of a function that makes the step."""
