"""Options that the commands with a server share."""

from __future__ import annotations

import argparse


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add the names that a server answers to, and the folders of source files that it reads."""
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="also answer to this name, such as a proxy's; .example.com includes the names below it; may be repeated",
    )
    parser.add_argument(
        "--source-root",
        action="append",
        default=[],
        metavar="DIR",
        help="show lines of the source files below this folder beside stack frames, as for files in the logdir; "
        "may be repeated",
    )
