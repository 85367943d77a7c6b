"""The only rooms that know who is serving."""
