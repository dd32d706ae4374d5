"""The reference of configuration keys, as it follows from the records that the files are read into."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.config import EngineSettings, HaSettings, InventorySettings, StoreSettings
from ovirt_placement_web.settings import WebSettings
from ovirt_scheduler_proxy.settings import Settings
from tests.docs.field_comments import comments

HEAD = """\
# Reference of configuration keys

Made from the code that reads them (`make reference`): each key with its type and, if it has one, its default.
Examples: [configuration.md](configuration.md), [enforcer/settings.md](enforcer/settings.md) and
[proxy-configuration.md](proxy-configuration.md). Times are in seconds unless a name says otherwise.
"""
PLACEMENT: Mapping[str, type[msgspec.Struct]] = {
    "engine": EngineSettings,
    "inventory": InventorySettings,
    "store": StoreSettings,
    "ha": HaSettings,
    "enforcer": EnforcerSettings,
    "web": WebSettings,
}
_WORDS = {str: "text", Path: "text", int: "whole number", float: "number", bool: "true or false"}


def configuration_page() -> str:
    parts = [HEAD, "## /etc/ovirt-placement/ovirt-placement.toml\n"]
    for name, settings in PLACEMENT.items():
        parts += _section(f"[{name}]", settings)
    parts.append("## /etc/ovirt-scheduler-proxy/ovirt-scheduler-proxy.toml\n")
    parts += _sections_below("", Settings)
    return "\n".join(parts)


def _section(title: str, settings: type[msgspec.Struct]) -> Iterator[str]:
    """The section itself, then those that stand in it."""
    rows = list(_rows(settings))
    if rows:
        yield "\n".join([f"### `{title}`", "", *rows, ""])
    yield from _sections_below(f"{title.strip('[]')}.", settings)


def _sections_below(prefix: str, settings: type[msgspec.Struct]) -> Iterator[str]:
    shown: dict[type[msgspec.Struct], str] = {}
    for field in msgspec.structs.fields(settings):
        record = _record_in(field.type)
        if record is not None:
            named = ".NAME" if get_origin(field.type) is dict else ""
            title = f"[{prefix}{field.name}{named}]"
            title = f"[{title}]" if get_origin(field.type) is tuple else title
            if record in shown:
                yield f"### `{title}`\n\nAs `{shown[record]}`.\n"
            else:
                shown[record] = title
                yield from _section(title, record)


def _rows(settings: type[msgspec.Struct]) -> Iterator[str]:
    """A line for each key, or for several that follow each other and mean the same."""
    said = comments(settings, shared=True)
    fields = (field for field in msgspec.structs.fields(settings) if _record_in(field.type) is None)
    for meaning, together in groupby(fields, key=lambda field: said[field.name]):
        keys = (f"`{field.name}` ({_kind(field.type)}{_default(field)})" for field in together)
        yield f"- {', '.join(keys)}: {meaning}"


def _record_in(kind: Any) -> type[msgspec.Struct] | None:
    """The record that a section, a list of sections, or sections by name are read into."""
    found = [one for one in (kind, *get_args(kind)) if isinstance(one, type)]
    return next((one for one in found if issubclass(one, msgspec.Struct)), None)


def _kind(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _kind(inner[0])
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in inner)
    if origin in (Union, types.UnionType):
        return _kind(next(one for one in inner if one is not type(None)))
    if origin is tuple:
        return f"list of {_kind(inner[0])}"
    if origin is not None:  # a mapping
        return f"{_kind(inner[1])}, by name"
    if kind is NoticeKind:
        return "[kind](reference-events.md#what-the-enforcer-reports)"
    if issubclass(kind, Enum):
        return " or ".join(f"`{one.value}`" for one in kind)
    return _WORDS[kind]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return ", must be given"
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return "" if default is None else f", `{json.dumps(msgspec.to_builtins(default, enc_hook=str))}`"
