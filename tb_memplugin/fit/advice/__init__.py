"""Trying advice: what each piece really saves, once compiled."""
