"""What is wrong in sections of the configuration that other commands read: they define how to read them.

A package names its section and its settings as an entry point of this group.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points

from ovirt_placement.config import Config
from ovirt_service.errors import UserError

GROUP = "ovirt_placement.sections"


def complaints(configuration: Config) -> Iterator[str]:
    for section in entry_points(group=GROUP):
        try:
            configuration.section(section.name, section.load())
        except UserError as error:
            yield str(error)
