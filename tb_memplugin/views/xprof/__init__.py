"""Recordings in the JSON formats of XProf's own memory tools."""
