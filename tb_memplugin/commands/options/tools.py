"""Options of the commands that start servers, and of those that help agents and scripts."""

from __future__ import annotations

import argparse

from tb_memplugin.commands.options.shared import JSON, LOGDIR, json_options, server_options


def serve(parser: argparse.ArgumentParser) -> None:
    """Serve the page on its own web server.

    example:
      tb-memplugin serve --logdir /tmp/xprof --open
    """
    parser.add_argument("--logdir", required=True, metavar="DIR", help=LOGDIR)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: %(default)s, this machine only)",
    )
    server_options(parser, 6007)
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    # For `%memory` in notebooks: the page may be in a notebook's frame, and the server ends when its input is closed.
    parser.add_argument("--in-notebook", action="store_true", help=argparse.SUPPRESS)


def xprof(parser: argparse.ArgumentParser) -> None:
    """Start XProf with our Memory Viewer and Memory Profile in place of its own.

    example:
      tb-memplugin xprof --logdir /tmp/xprof
    """
    parser.add_argument("--logdir", required=True, metavar="DIR", help="folder with profiles")
    parser.add_argument(
        "--bind-all",
        action="store_true",
        help="listen on all interfaces, also with XProf's worker service (default: this machine only, without it)",
    )
    parser.add_argument(
        "--grpc_port",
        "--grpc-port",
        type=int,
        metavar="PORT",
        help="port of XProf's worker service, with --bind-all (default: a free one)",
    )
    server_options(parser, 8791)
    parser.epilog = "XProf's own options, such as --src_prefix, may follow; `xprof --help` lists them."
    parser.set_defaults(accepts_unknown=True)


def cache(parser: argparse.ArgumentParser) -> None:
    """Show or clear what is kept in the user's cache folder.

    `fleet` keeps the summary of each file there, and `fit` the programs that it compiled. Both are bounded by size. A
    logdir is never written to.

    examples:
      tb-memplugin cache
      tb-memplugin cache --clear fleet
    """
    parser.add_argument("--clear", choices=["fleet", "fit", "all"], help="delete what is kept for this command")
    json_options(parser)


def schema(parser: argparse.ArgumentParser) -> None:
    """Print the JSON Schema of what a command prints with --json.

    examples:
      tb-memplugin schema
      tb-memplugin schema explain > explain.schema.json
    """
    parser.add_argument(
        "name", metavar="COMMAND", nargs="?", help="a command, or a kind of its answer; without it, list the names"
    )
    parser.add_argument("--json", action="store_true", help=JSON)


def mcp(parser: argparse.ArgumentParser) -> None:
    """Answer questions of a coding agent about a logdir, over the Model Context Protocol.

    Serves tools on standard input and output: summary, explain, buffers, times,
    compare, advice, fit, fleet, trend, check and baseline. They read the logdir, and write
    and run nothing. An agent starts this command itself; docs/agents.md has its configuration.

    example:
      tb-memplugin mcp /tmp/xprof
    """
    parser.add_argument("logdir", metavar="LOGDIR", help=LOGDIR)


def skill(parser: argparse.ArgumentParser) -> None:
    """Install or print a skill that teaches a coding agent to find and lower memory use.

    The skill is a file SKILL.md with the commands to run, in order. It is written
    to a folder of its own, tb-memplugin, in DIR. ~/.agents/skills is where agents
    look that follow agentskills.io; name the folder of other agents, such as
    ~/.claude/skills, or of a project, such as .agents/skills.

    A file that you changed is not overwritten without --force.

    examples:
      tb-memplugin skill install
      tb-memplugin skill install ~/.claude/skills
      tb-memplugin skill show
    """
    parser.add_argument("action", choices=["install", "show"], help="what to do with the skill")
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", default="~/.agents/skills", help="folder of skills (default: %(default)s)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite a file that was changed")
    json_options(parser)


def hook(parser: argparse.ArgumentParser) -> None:
    """Install, remove or check the hook that adds our pages to the `xprof` command.

    The hook affects the plain `xprof` command of this Python environment only.

    example:
      tb-memplugin hook install
    """
    parser.add_argument("action", choices=["install", "status", "remove"], help="what to do with the hook")
    json_options(parser)
