"""Sections of the configuration that other commands read: they define how to read them.

A package names its section and its settings as an entry point of this group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Annotated, Any, NamedTuple, get_args, get_origin

import msgspec

from ovirt_placement.config import NAMES, Config
from ovirt_service.errors import UserError

GROUP = "ovirt_placement.sections"


class ConfiguredName(NamedTuple):
    """A text of the configuration that names something of the engine's."""

    #: The section, and the key with its place in it.
    where: str
    kind: str
    word: str


def complaints(configuration: Config) -> Iterator[str]:
    """What is wrong in each of them."""
    for section in entry_points(group=GROUP):
        try:
            configuration.section(section.name, section.load())
        except UserError as error:
            yield str(error)


def configured_names(configuration: Config) -> tuple[ConfiguredName, ...]:
    """What all sections name, but for what they name by default; nothing of a section that is wrong."""
    found = [*names_of("ha", configuration.ha)]
    for section in entry_points(group=GROUP):
        try:
            found += names_of(section.name, configuration.section(section.name, section.load()))
        except UserError:
            continue
    return tuple(found)


def names_of(section: str, settings: msgspec.Struct) -> Iterator[ConfiguredName]:
    """What the settings of one section name."""
    for field in msgspec.structs.fields(type(settings)):
        value = getattr(settings, field.name)
        if value != field.default:
            yield from _names(field.type, value, f"[{section}] {field.name}")


def _names(annotation: Any, value: Any, where: str) -> Iterator[ConfiguredName]:
    if get_origin(annotation) is Annotated:
        inner, *metas = get_args(annotation)
        for meta in metas:
            if kind := (meta.extra or {}).get(NAMES):
                yield ConfiguredName(where, kind, value)
        yield from _names(inner, value, where)
    elif isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(type(value)):
            yield from _names(field.type, getattr(value, field.name), f"{where}.{field.name}")
    elif isinstance(value, Mapping):
        of_keys, of_values = get_args(annotation)
        for key, one in value.items():
            yield from _names(of_keys, key, where)
            yield from _names(of_values, one, f"{where}.{key}")
    elif isinstance(value, tuple) and get_args(annotation):
        for number, one in enumerate(value):
            place = f"{where}[{number}]" if isinstance(one, msgspec.Struct) else where
            yield from _names(get_args(annotation)[0], one, place)
