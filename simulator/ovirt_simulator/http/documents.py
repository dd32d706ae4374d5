"""Rules, policies, events, statistics, users and the root of the API as the engine shows them."""

from __future__ import annotations

import hashlib
import uuid
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache
from operator import attrgetter
from typing import Any

from ovirt_simulator.core.entities import Reference, Statistic, stable_id, user_id
from ovirt_simulator.core.roles import Permission
from ovirt_simulator.http.call import Call, Links
from ovirt_simulator.http.fields import (
    DESCRIPTION,
    NAME,
    Field,
    Shape,
    fixed,
    linked,
    mentions,
    nested,
    properties,
    reference,
    value,
    when,
)
from ovirt_simulator.http.markup import API, element, entity, lines, path, text

# -- affinity


def _rule(tag: str) -> Field:
    def made(_: Links, group: Any) -> str:
        rule = getattr(group, tag)
        positive = rule.enabled and rule.positive
        shown = (("enabled", rule.enabled), ("enforcing", rule.enforcing), ("positive", positive))
        return element(tag, *(text(name, yes) for name, yes in shown))

    return made


def _members(name: str, tag: str, collection: str) -> Field:
    """The ids of members, unless their list is followed and stands there already."""
    listed = mentions(name, tag, collection, name, always=True)
    return when(lambda links, _: not links.follows(name), listed)


AFFINITY_GROUP = Shape(
    "affinity_group",
    (
        NAME,
        DESCRIPTION,
        linked("vms hosts vm_labels host_labels"),
        lambda links, group: text("broken", links.call.engine.queries.is_broken(group)),
        value("enforcing", "vms_rule.enforcing"),
        value("positive", lambda group: group.vms_rule.positive if group.vms_rule.enabled else None),
        value("priority", lambda group: float(group.priority)),
        _rule("hosts_rule"),
        _rule("vms_rule"),
        reference("cluster", "clusters"),
        _members("vms", "vm", "vms"),
        _members("hosts", "host", "hosts"),
        _members("vm_labels", "affinity_label", "affinitylabels"),
        _members("host_labels", "affinity_label", "affinitylabels"),
    ),
)
AFFINITY_LABEL = Shape(
    "affinity_label",
    (NAME, value("has_implicit_affinity_group", "implicit"), fixed("read_only", False), linked("hosts vms")),
)
TAG = Shape("tag", (NAME, DESCRIPTION))

# -- scheduling policies

_UNIT = reference("scheduling_policy_unit", "schedulingpolicyunits", "unit")
SCHEDULING_POLICY = Shape(
    "scheduling_policy",
    (
        NAME,
        DESCRIPTION,
        # Weights cannot be followed: link and attribute have different names.
        linked("filters", weights=None, balances="balances"),
        value("default_policy", "default"),
        value("locked"),
        properties("properties"),
    ),
)
FILTER = Shape("filter", (value("position"), _UNIT), attrgetter("unit"))
WEIGHT = Shape("weight", (value("factor"), _UNIT), attrgetter("unit"))
BALANCE = Shape("balance", (_UNIT,), attrgetter("unit"))
SCHEDULING_POLICY_UNIT = Shape(
    "scheduling_policy_unit",
    (NAME, DESCRIPTION, value("enabled"), value("internal"), properties("properties"), value("type")),
)

# -- events, jobs, statistics


def _subject(tag: str, collection: str) -> Field:
    """What an event speaks of stands there with its name."""

    def made(_: Links, event: Any) -> str:
        subject: Reference | None = getattr(event, tag)
        if subject is None:
            return ""
        if subject.id is None:
            return element(tag, text("name", subject.name))
        return entity(tag, path(collection, subject.id), subject.id, text("name", subject.name))

    return made


EVENT = Shape(
    "event",
    (
        DESCRIPTION,
        *map(value, ("code", "correlation_id", "custom_data", "custom_id", "flood_rate")),
        value("index", "id"),
        *map(value, ("origin", "severity", "time")),
        _subject("cluster", "clusters"),
        _subject("data_center", "datacenters"),
        _subject("host", "hosts"),
        _subject("template", "templates"),
        _subject("user", "users"),
        _subject("vm", "vms"),
    ),
    id=lambda event: str(event.id),
    source=lambda _, event: (event,),
)
JOB = Shape(
    "job",
    (
        DESCRIPTION,
        fixed("auto_cleared", True),
        value("end_time", "ended"),
        value("external"),
        value("last_updated", lambda job: job.ended or job.started),
        value("start_time", "started"),
        value("status"),
    ),
)
_TWO_DIGITS = Context(prec=2, rounding=ROUND_HALF_UP)


def two_digits(number: float) -> str:
    """Round as Java's `new BigDecimal(value, new MathContext(2))` does and writes it: 99.6 is 1.0E+2."""
    return str(_TWO_DIGITS.create_decimal(Decimal(number)))


@cache
def statistic_id(name: str) -> str:
    """Give Java's `UUID.nameUUIDFromBytes(name)`: the same for every host and VM."""
    digest = hashlib.md5(name.encode(), usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=3))


def _measured(_: Links, one: Statistic) -> str:
    is_decimal = isinstance(one.value, float)
    datum = two_digits(one.value) if is_decimal else str(one.value)
    words = {"name": one.name, "kind": "gauge", "type": "decimal" if is_decimal else "integer"}
    values = f"<values><value><datum>{datum}</datum></value></values>"
    return lines(*(text(tag, word) for tag, word in words.items()), text("unit", one.unit), values)


def statistics_of(owner: Field) -> Shape:
    """How statistics are shown of hosts, or of VMs."""
    return Shape("statistic", (_measured, owner), lambda one: statistic_id(one.name))


# -- users

USER = Shape(
    "user",
    (
        NAME,
        linked("permissions"),
        nested("domain", value("name", "directory")),
        value("principal", "name"),
        value("user_name"),
    ),
)
ROLE = Shape("role", (NAME, DESCRIPTION, linked("permits"), value("administrative")))
PERMIT = Shape("permit", (value("name", str),), str)


def _holder(links: Links, one: Permission) -> str:
    return links.reference(*(("group", "groups") if one.is_group else ("user", "users")), one.holder)


PERMISSION = Shape(
    "permission",
    (reference("role", "roles"), _holder, reference("vm", "vms"), reference("cluster", "clusters")),
)

# -- the root

#: The engine that the simulator speaks as.
VERSION = ("4", "5", "6", "ovirt-engine-4.5.6-1.el9")


def _product() -> str:
    names = ("build", "full_version", "major", "minor")
    major, minor, build, full = VERSION
    shown = dict(zip(names, (build, full, major, minor), strict=True))
    version = element("version", *(text(name, word) for name, word in shown.items()), text("revision", 0))
    words = {"instance_id": stable_id("engine", "simulator"), "name": "oVirt Engine", "vendor": "ovirt.org"}
    return element("product_info", *(text(name, word) for name, word in words.items()), version)


def api(call: Call) -> str:
    """Render the root: which engine this is, its time, and who asks."""
    own = user_id(call.user_name)
    user = entity("authenticated_user", f"{API}/users/{own}", own)
    children = lines(_product(), text("time", call.engine.queries.now), user)
    return f"<api>\n{children}\n</api>"


def option(name: str, shown: str) -> str:
    """Render an option, which has one value for all versions of clusters."""
    each = element("system_option_value", text("value", shown), text("version", "general"))
    inside = text("name", name) + element("values", each)
    return entity("system_option", path("options", name), name, inside)
