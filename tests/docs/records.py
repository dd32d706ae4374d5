"""References made from records: JSON Schema, configuration keys, events; comments give the meaning."""

import inspect
import json
import pkgutil
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from ovirt_enforcer.cli.history import PlanDecided, UserActionDone
from ovirt_enforcer.history import WhyNot
from ovirt_enforcer.log import COMMON_FACTS, NoticeKind
from ovirt_enforcer.plans import PlansBack, RoomFound
from ovirt_enforcer.policy_simulation import Simulations
from ovirt_enforcer.settings import EnforcerSettings, NotificationSettings
from ovirt_placement import answers
from ovirt_placement.answers.document import Document
from ovirt_placement.answers.plans import Plans
from ovirt_placement.answers.plans.maintenance import MaintenancePlans
from ovirt_placement.config import EngineSettings, HaSettings, InventorySettings, StoreSettings
from ovirt_placement.engine.events import ORIGIN
from ovirt_placement.store.enforcer.history import RecordedMigration
from ovirt_placement.store.orders import Pause, WaitingPlan
from ovirt_placement_web.settings import WebSettings
from ovirt_scheduler_proxy.plugins import ProxyCheck
from ovirt_scheduler_proxy.settings import Settings

_FIELD = re.compile(r"    (\w+): ")
_COMMENT = "    #: "


def comments(record: type, *, shared: bool = False) -> Mapping[str, str]:
    """The comment of each field that has one, also those of the classes that it extends.

    If `shared`, fields that follow each other with nothing between them have the comment above the first.
    """
    found: dict[str, str] = {}
    for one in reversed(record.__mro__):
        if one.__module__.startswith("ovirt_"):
            found.update(_own(inspect.getsource(one).splitlines(), shared))
    return found


def _own(lines: list[str], shared: bool) -> Iterator[tuple[str, str]]:
    said: list[str] = []
    complete = False
    for line in lines:
        if line.startswith(_COMMENT):
            said = [] if complete else said
            said.append(line.removeprefix(_COMMENT))
            complete = False
        elif match := _FIELD.match(line):
            if said and (shared or not complete):
                yield match[1], " ".join(said)
            complete = True
        elif not line.startswith("     "):
            said = []


#: What has no kind: each command says by itself what it prints.
OTHERS = (
    *(Plans, PlansBack, RoomFound, MaintenancePlans, Simulations, PlanDecided, RecordedMigration),
    *(UserActionDone, WhyNot, WaitingPlan, Pause, ProxyCheck),
)


def schema() -> dict[str, Any]:
    """The JSON Schema that every answer meets: its `kind` says which definition; and what has no kind."""
    kinds = documents()
    roots, components = msgspec.json.schema_components((*kinds, *OTHERS), ref_template="#/$defs/{name}")
    for component in components.values():
        if "description" in component:  # Python 3.13 takes the indentation out of docstrings by itself
            component["description"] = inspect.cleandoc(component["description"])
    for kind in kinds:
        components[kind.__name__]["required"][1:1] = ["version", "as_of", "age_seconds"]
    for record in _records((*kinds, *OTHERS)):
        _describe(components.get(record.__name__, {}), record)
    components |= {
        "History": _list_of(PlanDecided, RecordedMigration, UserActionDone),
        "WaitingPlans": _list_of(WaitingPlan),
        "Pauses": _list_of(Pause),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What ovirt-placement, ovirt-enforcer and ovirt-scheduler-proxy print with --json",
        "oneOf": list(roots[: len(kinds)]),
        "$defs": components,
    }


def documents() -> tuple[type[Document], ...]:
    """Every kind of answer, by its name."""
    modules = {one.name for one in pkgutil.walk_packages(answers.__path__, f"{answers.__name__}.")}
    for module in modules:
        import_module(module)
    found = {one for one in _kinds(Document) if one.__module__ in modules}
    return tuple(sorted(found, key=lambda one: str(one.__struct_config__.tag)))


def _kinds(of: type[Document]) -> Iterator[type[Document]]:
    """Those with a name of their own, which is not their class's."""
    for kind in of.__subclasses__():
        if kind.__struct_config__.tag != kind.__name__:
            yield kind
        yield from _kinds(kind)


def schema_page() -> str:
    return json.dumps(schema(), indent=2) + "\n"


def _records(kinds: Iterable[Any]) -> Iterator[type[msgspec.Struct]]:
    """All records that these types are made of."""
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield kind
            yield from _records(field.type for field in msgspec.structs.fields(kind))
        yield from _records(get_args(kind))


def _describe(definition: dict[str, Any], kind: type[msgspec.Struct]) -> None:
    """Let each property say what stands in the comment above its field."""
    said = comments(kind)
    for field in msgspec.structs.fields(kind):
        if field.name in said and field.encode_name in definition.get("properties", {}):
            definition["properties"][field.encode_name]["description"] = said[field.name]


def _list_of(*kinds: type) -> dict[str, Any]:
    items = [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds]
    return {"type": "array", "items": items[0] if len(items) == 1 else {"anyOf": items}}


_OF_KEYS = """\
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
    parts = [_OF_KEYS, "## /etc/ovirt-placement/ovirt-placement.toml\n"]
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


_OF_EVENTS = f"""\
# Reference of events

Made from the code that reports them (`make reference`). An event of ours in the engine's log has the origin
`{ORIGIN}`, and the cluster and the VM that it is about. Besides the kinds below there are warnings of
[groups that a VM lost](enforcer.md#groups-that-vms-lose) and of rules that mean nothing (`ovirt-placement
doctor --event`, once a day and cluster).

## What the enforcer reports

A * marks what is in the engine's log by default; [notifications.md](notifications.md) has the settings.
Every sentence may also use {", ".join(f"`${fact}`" for fact in sorted(COMMON_FACTS))}.
"""


def events_page() -> str:
    by_default = NotificationSettings().engine.kinds
    rows = []
    for kind in NoticeKind:
        more = [f"`${fact}`" for fact in sorted(kind.facts) if f"${fact}" not in kind.sentence]
        also = f"; also {', '.join(more)}" if more else ""
        marked = "*" if kind in by_default else ""
        rows.append(f"- `{kind}`{marked} ({kind.severity}): {kind.sentence}{also}")
    return "\n".join([_OF_EVENTS, *rows, ""])
