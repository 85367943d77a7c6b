"""Recordings in the JSON formats of XProf's own Memory Viewer and Memory Profile, for its page and for scripts."""

from typing import Any

Json = dict[str, Any]
