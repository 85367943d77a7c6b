"""Fixtures that tests of several rooms use."""

from support.hook_environment import environment as environment
