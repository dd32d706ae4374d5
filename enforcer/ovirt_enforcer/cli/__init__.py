"""The command line: a file a subcommand, which parses and prints and decides nothing."""

from ovirt_service import process


def command() -> int:
    return process.start("ovirt_enforcer.cli.main")
