"""A whole oVirt engine on localhost: its state machine, its scheduler and its REST API."""

from ovirt_service import process


def command() -> int:
    """Run the installed command."""
    return process.start("ovirt_simulator.cli")
