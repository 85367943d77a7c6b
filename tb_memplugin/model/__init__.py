"""The data model: recordings, their tables and the values of a compiled program."""
