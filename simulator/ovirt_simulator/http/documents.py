"""How the engine shows what placement reads: hosts, VMs, rules, policies, events, users and the root."""

import hashlib
import uuid
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache
from operator import attrgetter
from typing import Any

from ovirt_simulator.core import entities
from ovirt_simulator.http.call import Call, Links
from ovirt_simulator.http.markup import API, attribute, element, entity, lines, path, text
from ovirt_simulator.http.resource import (
    Field,
    Shape,
    linked,
    mention,
    mentions,
    nested,
    parent,
    properties,
    reference,
    value,
    when,
)

_MIB = 1 << 20

# -- data centers, networks, clusters
DATA_CENTER = Shape(
    "data_center", "name description", linked("clusters networks permissions"), "local=local_storage status"
)


def _first_data_center(links: Links, _: Any) -> str:
    return links.reference("data_center", "datacenters", next(iter(links.call.state.data_centers), None))


NETWORK = Shape("network", "name", linked("permissions vnic_profiles"), _first_data_center)
VNIC_PROFILE = Shape("vnic_profile", "name", linked("permissions"), "network@networks")


def _version(_: Links, cluster: Any) -> str:
    major, _, minor = cluster.compatibility.partition(".")
    return element("version", text("major", major), text("minor", minor))


CLUSTER = Shape(
    "cluster",
    "name description",
    linked("affinity_groups networks permissions"),
    "<cpu><architecture>x86_64</architecture><type>Secure Intel Skylake Server Family</type></cpu>",
    properties("custom_scheduling_policy_properties", "scheduling_properties"),
    "ha_reservation",
    nested("memory_policy", nested("over_commit", "percent=memory_overcommit_percent")),
    "threads_as_cores=count_threads_as_cores upgrade_correlation_id upgrade_in_progress=upgrade_mode",
    value("upgrade_percent_complete", lambda cluster: cluster.upgrade_percent),
    _version,
    "data_center@datacenters",
    reference("scheduling_policy", "schedulingpolicies", lambda cluster: cluster.policy_id or None),
)

# -- hosts
_HOST_LINKS = linked("nics numa_nodes affinity_labels permissions tags statistics", storage=None)


def _threads(host: entities.Host) -> int:
    return max(1, (host.threads or host.cores) // host.cores if host.cores else 1)


HOST = Shape(
    "host",
    "name",
    _HOST_LINKS,
    "address",
    nested(
        "cpu",
        nested(
            "topology",
            value("cores", lambda host: host.cores // host.sockets),
            "sockets",
            value("threads", _threads),
        ),
    ),
    value("max_scheduling_memory", lambda host: host.as_reported().free_mb * _MIB),
    value("memory", lambda host: host.memory_mb * _MIB),
    # These two `ovirt_host` reads of every host, for every task.
    "<os><custom_kernel_cmdline></custom_kernel_cmdline></os>",
    "<power_management><enabled>false</enabled><kdump_detection>true</kdump_detection></power_management>",
    nested("spm", value("status", lambda host: "spm" if host.spm else "none")),
    "status update_available cluster@clusters",
    kept=True,
)
#: As lists of members, actions and labels mention a host or VM: with its parts.
HOST_OUTLINE = Shape("host", "name", _HOST_LINKS)
HOST_ACTED = Shape("host", _HOST_LINKS)
HOST_MENTION, VM_MENTION = Shape("host"), Shape("vm")

# -- VMs
#: Statuses without a host, and without all that only a running VM has.
_OFF = frozenset({"down", "suspended", "image_locked", "image_illegal"})
_VM_LINKS = linked(
    "cdroms disk_attachments watchdogs graphics_consoles host_devices nics numa_nodes affinity_labels"
    " permissions tags statistics"
)
#: From this on, in MiB, a video device is a QXL one (the engine's VideoDeviceSettings).
_QXL_MB = 72


def _display(_: Links, vm: entities.Vm) -> str:
    video = "qxl" if vm.video_mb >= _QXL_MB else "vga" if vm.video_mb else None
    return element("display", "<monitors>1</monitors>", text("video_type", video))


VM = Shape(
    "vm",
    "name description",
    _VM_LINKS,
    nested(
        "cpu",
        "architecture",
        nested(
            "topology",
            value("cores", lambda vm: max(1, vm.vcpus // (vm.sockets * vm.threads_per_core))),
            "sockets threads=threads_per_core",
        ),
    ),
    "cpu_pinning_policy=cpu_pinning",
    properties("custom_properties", item="custom_property"),
    _display,
    nested("high_availability", "enabled=ha priority=ha_priority"),
    nested("io", "threads=io_threads"),
    value("memory", lambda vm: vm.memory_mb * _MIB),
    nested(
        "memory_policy",
        value("guaranteed", lambda vm: vm.guaranteed_mb * _MIB),
        value("max", lambda vm: 4 * vm.memory_mb * _MIB),
    ),
    value("origin", lambda vm: "managed_hosted_engine" if vm.hosted_engine else "ovirt"),
    "<os><type>other</type></os>",
    nested("placement_policy", "affinity", mentions("hosts", "host", "hosts", "pinned_hosts")),
    "cluster@clusters cpu_profile@cpuprofiles",
    lambda _, vm: "" if vm.quota is None else f'<quota id="{attribute(vm.quota)}"/>',
    text("next_run_configuration_exists", False),
    when(lambda _, vm: vm.status not in _OFF, text("run_once", False), "start_time=started"),
    "status",
    reference("host", "hosts", lambda vm: vm.host if vm.status not in _OFF else None),
    "instance_type@instancetypes",
    lambda _, vm: mention("original_template", "templates", vm.template or entities.BLANK_TEMPLATE),
    reference("template", "templates", lambda vm: vm.template or entities.BLANK_TEMPLATE),
    kept=True,
)
VM_OUTLINE = Shape("vm", "name", _VM_LINKS)
VM_ACTED = Shape("vm", _VM_LINKS)
DISK_ATTACHMENT = Shape("disk_attachment", "bootable disk@disks=id", parent("vm", "vms", "vm_id"))
DISK = Shape("disk", "name=id disk_profile@diskprofiles=profile")
NIC = Shape("nic", "name", parent("vm", "vms", "vm_id"), "vnic_profile@vnicprofiles")


# -- affinity
def _rule(tag: str) -> Field:
    def made(_: Links, group: Any) -> str:
        rule = getattr(group, tag)
        enabled, enforcing = text("enabled", rule.enabled), text("enforcing", rule.enforcing)
        return element(tag, enabled, enforcing, text("positive", rule.enabled and rule.positive))

    return made


def _members(name: str, tag: str, collection: str) -> Field:
    """The ids of members, unless their list is followed and stands there already."""
    listed = mentions(name, tag, collection, name, always=True)
    return when(lambda links, _: not links.follows(name), listed)


AFFINITY_GROUP = Shape(
    "affinity_group",
    "name description",
    linked("vms hosts vm_labels host_labels"),
    lambda links, group: text("broken", links.call.engine.queries.is_broken(group)),
    "enforcing=vms_rule.enforcing",
    value("positive", lambda group: group.vms_rule.positive if group.vms_rule.enabled else None),
    value("priority", lambda group: float(group.priority)),
    _rule("hosts_rule"),
    _rule("vms_rule"),
    "cluster@clusters",
    _members("vms", "vm", "vms"),
    _members("hosts", "host", "hosts"),
    _members("vm_labels", "affinity_label", "affinitylabels"),
    _members("host_labels", "affinity_label", "affinitylabels"),
)
AFFINITY_LABEL = Shape(
    "affinity_label",
    "name has_implicit_affinity_group=implicit",
    text("read_only", False),
    linked("hosts vms"),
)
TAG = Shape("tag", "name description")

# -- scheduling policies
SCHEDULING_POLICY = Shape(
    "scheduling_policy",
    "name description",
    # Weights cannot be followed: link and attribute have different names.
    linked("filters", weights=None, balances="balances"),
    "default_policy=default locked",
    properties("properties"),
)
_UNIT = "scheduling_policy_unit@schedulingpolicyunits=unit"
FILTER = Shape("filter", f"position {_UNIT}", identity=attrgetter("unit"))
WEIGHT = Shape("weight", f"factor {_UNIT}", identity=attrgetter("unit"))
BALANCE = Shape("balance", _UNIT, identity=attrgetter("unit"))
SCHEDULING_POLICY_UNIT = Shape(
    "scheduling_policy_unit", "name description enabled internal", properties("properties"), "type"
)


# -- events, jobs, statistics
def _subject(tag: str, collection: str) -> Field:
    """What an event speaks of stands there with its name."""

    def made(_: Links, event: Any) -> str:
        subject: entities.Reference = getattr(event, tag) or entities.Reference()
        name = text("name", subject.name)
        if subject.id is None:
            return element(tag, name) if name else ""
        return entity(tag, path(collection, subject.id), subject.id, name)

    return made


EVENT = Shape(
    "event",
    "description code correlation_id custom_id index=id origin severity time",
    _subject("cluster", "clusters"),
    _subject("data_center", "datacenters"),
    _subject("host", "hosts"),
    _subject("template", "templates"),
    _subject("user", "users"),
    _subject("vm", "vms"),
    identity=lambda event: str(event.id),
    kept=True,
)
JOB = Shape(
    "job",
    "description",
    text("auto_cleared", True),
    "end_time=ended",
    text("external", False),
    value("last_updated", lambda job: job.ended or job.started),
    "start_time=started status",
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


def _measured(_: Links, statistic: entities.Statistic) -> str:
    is_decimal = isinstance(statistic.value, float)
    datum = two_digits(statistic.value) if is_decimal else str(statistic.value)
    kind = text("type", "decimal" if is_decimal else "integer")
    values = f"<values><value><datum>{datum}</datum></value></values>"
    name, unit = text("name", statistic.name), text("unit", statistic.unit)
    return lines(name, "<kind>gauge</kind>", kind, unit, values)


def statistics_of(owner: Field) -> Shape:
    """How statistics are shown of hosts, or of VMs."""
    return Shape("statistic", _measured, owner, identity=lambda one: statistic_id(one.name))


# -- users
USER = Shape(
    "user", "name", linked("permissions"), nested("domain", "name=directory"), "principal=name user_name"
)
ROLE = Shape("role", "name description", linked("permits"), "administrative")
PERMIT = Shape("permit", value("name", str), identity=str)


def _holder(links: Links, permission: entities.Permission) -> str:
    words = ("group", "groups") if permission.is_group else ("user", "users")
    return links.reference(*words, permission.holder)


PERMISSION = Shape("permission", "role@roles", _holder, "vm@vms cluster@clusters")

# -- the root
#: The engine that the simulator speaks as.
VERSION = ("4", "5", "6", "ovirt-engine-4.5.6-1.el9")


def _product() -> str:
    major, minor, build, full = VERSION
    of_build = text("build", build) + text("full_version", full)
    version = f"{of_build}<major>{major}</major><minor>{minor}</minor><revision>0</revision>"
    about = "<name>oVirt Engine</name><vendor>ovirt.org</vendor>" + element("version", version)
    return element("product_info", text("instance_id", entities.stable_id("engine", "simulator")), about)


def api(call: Call) -> str:
    """Render the root: which engine this is, its time, and who asks."""
    own = entities.user_id(call.user_name)
    user = entity("authenticated_user", f"{API}/users/{own}", own)
    return f"<api>\n{lines(_product(), text('time', call.engine.queries.now), user)}\n</api>"


def option(name: str, shown: str) -> str:
    """Render an option, which has one value for all versions of clusters."""
    each = element("system_option_value", text("value", shown), text("version", "general"))
    inside = text("name", name) + element("values", each)
    return entity("system_option", path("options", name), name, inside)
