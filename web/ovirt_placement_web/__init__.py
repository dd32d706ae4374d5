"""The command `ovirt-placement-web`: a page that shows what `answers` knows, and decides nothing."""

from ovirt_service import process


def command() -> int:
    return process.start("ovirt_placement_web.cli")
