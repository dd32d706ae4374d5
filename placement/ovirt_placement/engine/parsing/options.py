"""Options of the engine's own configuration, as `engine-config` sets them."""

from __future__ import annotations

from ovirt_placement.engine.parsing import xml


def by_version(content: bytes) -> dict[str, str]:
    """Read `/options/NAME`: the option's value for each compatibility version."""
    values = xml.children(xml.root(content), "values").get("values")
    found = {}
    for entry in () if values is None else values.iterchildren("system_option_value"):
        fields = xml.children(entry, "version", "value")
        found[xml.text(fields.get("version"))] = xml.text(fields.get("value"))
    return found
