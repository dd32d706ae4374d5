"""Rules, policies, events, statistics, users and the root of the API as the engine shows them."""

from __future__ import annotations

import hashlib
import uuid
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache
from operator import attrgetter
from typing import Any

from ovirt_simulator.core.entities import ROOT_TAG, Reference, Statistic, stable_id, user_id
from ovirt_simulator.core.roles import Permission
from ovirt_simulator.http.call import Call, Links
from ovirt_simulator.http.fields import (
    DESCRIPTION,
    NAME,
    Field,
    Made,
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

_BLANK = "00000000-0000-0000-0000-000000000000"

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
TAG = Shape("tag", (NAME, DESCRIPTION, reference("parent", "tags")))

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


@cache
def _meaning(name: str, description: str, kind: str, type_name: str, unit: str) -> str:
    shown = (
        ("name", name),
        ("description", description),
        ("kind", kind),
        ("type", type_name),
        ("unit", unit),
    )
    return lines(*(text(tag, word) for tag, word in shown))


def _values(_: Links, statistic: Statistic) -> str:
    shown = (two_digits(each) if isinstance(each, float) else each for each in statistic.values)
    return element("values", *(f"<value><datum>{datum}</datum></value>" for datum in shown))


def statistics_of(owner: Field) -> Shape:
    """How statistics are shown of hosts, or of VMs."""
    meaning: Made = lambda _, one: _meaning(one.name, one.description, one.kind, one.type, one.unit)  # noqa: E731
    return Shape("statistic", (meaning, _values, owner), lambda one: statistic_id(one.name))


# -- users

USER = Shape(
    "user",
    (
        NAME,
        linked("permissions roles"),
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
#: The API's root collections, each with the root element of its list where that is not its name.
_NAMES = (
    "affinity_labels bookmarks cluster_levels clusters cpu_profiles data_centers disk_profiles disks domains"
    " events external_host_providers external_template_imports external_vm_imports groups hosts icons"
    " image_transfers instance_types jobs katello_errata mac_pools network_filters networks"
    " openstack_image_providers openstack_network_providers openstack_volume_providers permissions roles"
    " scheduling_policies scheduling_policy_units storage_connections storage_domains tags templates users"
    " vm_pools vms vnic_profiles"
)
COLLECTIONS = {name.replace("_", ""): name for name in _NAMES.split()} | {
    "operatingsystems": "operation_systems"
}
_SEARCHABLE = (
    "clusters datacenters disks events externalhostproviders groups hosts instancetypes jobs networks"
    " openstackimageproviders openstacknetworkproviders openstackvolumeproviders storagedomains templates"
    " users vmpools vms"
)


def _root_links() -> str:
    return lines(
        *(f'<link href="{API}/{name}" rel="{name}"/>' for name in COLLECTIONS),
        *(
            f'<link href="{API}/{name}?search={{query}}" rel="{name}/search"/>'
            for name in _SEARCHABLE.split()
        ),
    )


def _product() -> str:
    names = ("build", "full_version", "major", "minor")
    major, minor, build, full = VERSION
    shown = dict(zip(names, (build, full, major, minor), strict=True))
    version = element("version", *(text(name, word) for name, word in shown.items()), text("revision", 0))
    words = {"instance_id": stable_id("engine", "simulator"), "name": "oVirt Engine", "vendor": "ovirt.org"}
    return element("product_info", *(text(name, word) for name, word in words.items()), version)


def minimal_api() -> str:
    """Render the root of an engine of which nothing but its collections is known."""
    return f"<api>\n{_root_links()}\n{_product()}\n</api>"


def api(call: Call, users: int) -> str:
    """Render the root; only administrators are shown the summary, and that the engine was never backed up."""
    own, summary = user_id(call.user_name), ""
    if not call.filtered:
        hosts, vms = tuple(call.state.hosts.values()), tuple(call.state.vms.values())
        counts = {
            "hosts": (sum(host.up for host in hosts), len(hosts)),
            "users": (1, users),
            "vms": (sum(vm.status not in ("down", "suspended") for vm in vms), len(vms)),
        }
        shown = (
            element(tag, text("active", some), text("total", all_)) for tag, (some, all_) in counts.items()
        )
        summary = element("summary", *shown)
    special = element(
        "special_objects",
        entity("blank_template", f"{API}/templates/{_BLANK}", _BLANK),
        entity("root_tag", f"{API}/tags/{ROOT_TAG.id}", ROOT_TAG.id),
    )
    children = lines(
        _root_links(),
        "<engine_backup/>" if summary else "",
        _product(),
        special,
        summary,
        text("time", call.engine.queries.now),
        entity("authenticated_user", f"{API}/users/{own}", own),
        entity("effective_user", f"{API}/users/{own}", own),
    )
    return f"<api>\n{children}\n</api>"


def option(name: str, shown: str) -> str:
    """Render an option, which has one value for all versions of clusters."""
    each = element("system_option_value", text("value", shown), text("version", "general"))
    inside = text("name", name) + element("values", each)
    return entity("system_option", path("options", name), name, inside)
