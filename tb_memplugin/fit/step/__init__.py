"""The user's step: its file, its call, and what is wrong with it."""
