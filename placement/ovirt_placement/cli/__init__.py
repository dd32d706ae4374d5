"""The command `ovirt-placement`: parses, asks, prints."""

from ovirt_service import process


def command() -> int:
    """Run the installed command."""
    return process.start("ovirt_placement.cli.main")
