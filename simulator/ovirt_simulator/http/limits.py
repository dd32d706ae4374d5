"""What the engine's API has and the simulator does not: asked for, it is refused, and never quietly left out.

The engine itself refuses elements that its API has not; here both kinds have one answer. What a client
sends for `false`, or empty, asks for nothing and passes, unless an entity is shown with something else before
a `PUT`; and what it is shown with always passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from lxml import etree

from ovirt_simulator.http import kept, unchanged
from ovirt_simulator.http.answers import not_simulated

#: Parameters of the API that would change an answer; all others are either known here or the engine's API
#: does not know them, and it reads past those.
_PARAMETERS = frozenset(
    {
        "async",
        "auto_pinning_policy",
        "clone_permissions",
        "collapse_snapshots",
        "deploy_hosted_engine",
        "destroy",
        "detail",
        "force",
        "JobId",
        "legacy",
        "merge",
        "override_configuration",
        "ovf_as_ova",
        "refresh",
        "report_status",
        "require_consistency",
        "seal",
        "StepId",
        "undeploy_hosted_engine",
        "unregistered",
        "use_active",
    }
)
#: Those that are known elsewhere, or mean nothing there: by method and pattern of the address.
_PARAMETERS_AT = {
    ("GET", "/"): frozenset({"rsdl", "schema"}),
    ("GET", "/disks/<disk_id>"): frozenset({"all_content"}),
    ("GET", "/options/<name>"): frozenset({"version"}),
    ("GET", "/vms/<vm_id>/snapshots"): frozenset({"all_content"}),
    ("POST", "/vms"): frozenset({"filter"}),
    ("PUT", "/vms/<vm_id>"): frozenset({"filter"}),
}
_NOTHING = ("false", "f", "no", "n", "0")


def _kept(paths: Collection[str]) -> str:
    """Give what is kept and shown; lists with all that is in them."""
    return " ".join(f"{path}/*" if path in kept.LISTS else path.removesuffix("/@id") for path in paths)


#: By the root of a body: the elements that count, by their paths, and behind `|` those that are read past
#: with all that is below, as documented. `/*` takes all that is below as it is, `/@disk` what a body with
#: that root may have. What refers to an entity by its id may show more of it, which counts for nothing.
#: Among what is read past is what an engine shows and takes from no client, if it may change at any moment.
_ELEMENTS = {
    "agent": "address type username password order port encrypt_options "
    "options/option/name options/option/value | host",
    "affinity_group": "name description priority positive enforcing cluster "
    "vms_rule/enabled vms_rule/positive vms_rule/enforcing "
    "hosts_rule/enabled hosts_rule/positive hosts_rule/enforcing "
    "vms/vm hosts/host vm_labels/affinity_label host_labels/affinity_label | broken comment",
    "affinity_label": "name vms/vm hosts/host has_implicit_affinity_group | comment description",
    "balance": "scheduling_policy_unit | name",
    "cluster": "description scheduling_policy scheduling_policy/name ha_reservation name "
    "custom_scheduling_policy_properties/property/name custom_scheduling_policy_properties/property/value "
    "data_center data_center/name mac_pool comment threads_as_cores version/major version/minor "
    f"cpu/type memory_policy/over_commit/percent {_kept(kept.OF_CLUSTERS)} "
    "| cpu/architecture management_network upgrade_in_progress upgrade_percent_complete",
    "cdrom": "file",
    "graphics_console": "protocol",
    "data_center": "name description comment local quota_mode version/major version/minor | status",
    "disk": "alias name description provisioned_size format sparse disk_profile "
    "storage_domains/storage_domain storage_domains/storage_domain/name "
    "shareable wipe_after_delete "
    "| content_type propagate_errors backup storage_type "
    "initial_size qcow_version active bootable interface actual_size total_size status",
    "disk_attachment": "active bootable interface pass_discard read_only uses_scsi_reservation disk/@disk "
    "| vm template",
    "event": "origin severity custom_id description cluster data_center host vm user flood_rate custom_data "
    "time correlation_id "
    "| cluster/name code data_center/name host/name index name template/name user/user_name vm/name",
    "filter": "position scheduling_policy_unit | name",
    "host": "cluster cluster/name name address comment root_password ssh/authentication_method "
    "ssh/user/password power_management/enabled power_management/automatic_pm_enabled "
    "power_management/kdump_detection "
    "| description override_iptables external_status max_scheduling_memory spm status status_detail summary",
    "image_transfer": "disk image direction "
    "| backup format inactivity_timeout shallow snapshot timeout_policy",
    "instance_type": "name description memory high_availability/enabled "
    "cpu/topology/sockets cpu/topology/cores cpu/topology/threads",
    "job": "description | auto_cleared external status",
    "mac_pool": "name description allow_duplicates default_pool ranges/range/from ranges/range/to",
    "network": "name required",
    "nic": "name vnic_profile mac/address interface linked plugged | description comment vm",
    "permission": "role role/name user group cluster data_center host vm",
    "permit": "name | administrative role",
    "role": "name description administrative permits/permit",
    "user": "user_name domain/name | name last_name email namespace principal",
    "group": "name domain/name | namespace",
    "scheduling_policy": "name description properties/property/name properties/property/value "
    "| balances filters weight",
    "snapshot": "description persist_memorystate",
    "step": "type description | external job status",
    "storage_domain": "name description | available committed external_status status used",
    "tag": "name description parent parent/name | comment",
    "template": "name description vm vm/name version/base_template version/version_name | cluster comment",
    "vm": "name description comment cluster cluster/name template template/name high_availability/enabled "
    "high_availability/priority "
    "memory memory_policy/guaranteed memory_policy/max memory_policy/ballooning "
    "custom_properties/custom_property/name custom_properties/custom_property/value "
    "cpu_profile quota instance_type instance_type/name type os/type console/enabled soundcard_enabled "
    "initialization/* "
    "cpu/topology/sockets cpu/topology/cores cpu/topology/threads cpu/mode io/threads "
    "placement_policy/affinity placement_policy/hosts/host placement_policy/hosts/host/name "
    "lease/storage_domain "
    "disk_attachments/disk_attachment/@disk_attachment snapshots/snapshot delete_protected "
    f"{_kept(kept.OF_VMS)} | graphics_consoles large_icon origin small_icon "
    "cpu/architecture creation_time display/address display/certificate display/port "
    "has_illegal_images host next_run_configuration_exists original_template run_once start_time status "
    "status_detail stop_reason stop_time",
    "vm_pool": "name description comment cluster cluster/name template template/name size type stateful "
    "prestarted_vms max_user_vms | auto_storage_select",
    "vnic_profile": "name | network",
    "weight": "factor scheduling_policy_unit | name",
}
#: The same of actions, by the last step of their addresses; and what every action may have.
_OF_EVERY_ACTION = "| filter"
_ACTIONS = {
    "copy": "storage_domain storage_domain/name disk disk/alias disk/name",
    "deactivate": "reason",
    "end": "succeeded | force",
    "install": "activate reboot root_password ssh/authentication_method ssh/user/password | image",
    "migrate": "cluster force host host/name migrate_vms_in_affinity_closure",
    "move": "storage_domain storage_domain/name",
    "reboot": "| force",
    "shutdown": "| force reason",
    "start": "vm/placement_policy/hosts/host vm/placement_policy/hosts/host/name "
    "| use_cloud_init use_sysprep use_initialization vm/bios vm/cdroms vm/console vm/display vm/floppies "
    "vm/initialization vm/name vm/os vm/stateless",
    "stop": "| force reason",
    "upgrade": "upgrade_action upgrade_percent_complete reboot | image timeout",
}
#: Elements that are not known, and may say only what is so anyway where nothing else was ever said of it; of
#: all others that is `false`.
_AS_IT_IS = {
    "instance_type/memory_policy/ballooning": "true",
    "instance_type/multi_queues_enabled": "true",
    "instance_type/virtio_scsi/enabled": "true",
    "role/mutable": "true",
    "template/memory_policy/ballooning": "true",
    "template/multi_queues_enabled": "true",
    "template/virtio_scsi/enabled": "true",
    "vm/auto_pinning_policy": "disabled",
    "vm/cpu_pinning_policy": "none",
    "vnic_profile/migratable": "true",
    "vnic_profile/pass_through/mode": "disabled",
}
#: Any element may have these of the entity that it began as, and the engine does not take them from there.
_EVERYWHERE = frozenset({"actions", "link"})


def check_parameters(method: str, pattern: str, parameter: Callable[[str], str | None]) -> None:
    """Refuse a parameter that the engine would act on at an address of this pattern."""
    for name in sorted(_PARAMETERS | _PARAMETERS_AT.get((method, pattern), frozenset())):
        asked = parameter(name)
        if asked is not None and asked.lower() not in _NOTHING:
            raise not_simulated(f"the parameter {name!r}")


def check_body(root: etree._Element, step: str, present: Callable[[], etree._Element] | None = None) -> None:
    """Refuse a body with an element that neither counts nor is said to be read past.

    `step` is the last one of the address: of actions, the name. `present` shows what a `PUT` changes.
    """
    known = _KNOWN_OF_ACTIONS.get(step, _ANY_ACTION) if root.tag == "action" else _KNOWN.get(str(root.tag))
    unknown = list(_unknown(root, known or _Element(), str(root.tag)))
    shown = present() if unknown and present is not None else None
    for path, node in unknown:
        if shown is not None and unchanged.says_what_is(path, node, shown):
            continue
        if _asks(node, path) or (shown is not None and unchanged.contradicts(path, node, shown)):
            raise not_simulated(f"the element {path}")


@dataclass
class _Element:
    """What may stand below an element of a body, by name."""

    #: Whether it is a value, or refers to an entity.
    counts: bool = False
    #: Whether what is below does not matter.
    whole: bool = False
    below: dict[str, _Element] = field(default_factory=dict)

    def at(self, path: str) -> _Element:
        """Give what is at a path, known from now on."""
        found = self
        for name in path.split("/"):
            found = found.below.setdefault(name, _Element())
        return found


def _known(paths: str) -> _Element:
    known = _Element()
    counting, _, read_past = paths.partition("|")
    for path in read_past.split():
        known.at(path).whole = True
    for path in counting.split():
        parent, _, name = path.rpartition("/")
        if name == "*":
            known.at(parent).whole = True
        elif name.startswith("@"):
            known.at(parent).below = _known(_ELEMENTS[name[1:]]).below
        else:
            known.at(path).counts = True
    return known


_KNOWN = {root: _known(paths) for root, paths in _ELEMENTS.items()}
_ANY_ACTION = _known(_OF_EVERY_ACTION)
_KNOWN_OF_ACTIONS = {
    name: _known(f"{paths} {'' if '|' in paths else '|'} filter") for name, paths in _ACTIONS.items()
}


def roots() -> frozenset[str]:
    """Give the roots of all bodies that are known, but for actions."""
    return frozenset(_ELEMENTS)


def read_past() -> dict[str, list[str]]:
    """Give what is read past, by the body that it stands in: the documentation lists the same."""
    actions = {f"action {name}": paths for name, paths in _ACTIONS.items()}
    bodies = {"action": _OF_EVERY_ACTION} | actions | _ELEMENTS
    found = {body: sorted(paths.partition("|")[2].split()) for body, paths in bodies.items()}
    return {body: names for body, names in sorted(found.items()) if names}


def _unknown(node: etree._Element, known: _Element, path: str) -> Iterator[tuple[str, etree._Element]]:
    """Give the elements below one that are not known, with their paths."""
    if known.whole or (known.counts and node.get("id") is not None):
        return
    for child in node.iterchildren("*"):
        tag = str(child.tag)
        below, here = known.below.get(tag), f"{path}/{tag}"
        if below is not None:
            yield from _unknown(child, below, here)
        elif tag not in _EVERYWHERE:
            yield here, child


def _asks(node: etree._Element, path: str) -> bool:
    """Say whether an element asks for anything: it, or what is below it, has an id or an unusual text."""
    usual = ("", _AS_IT_IS.get(path, "false"))
    if "id" in node.attrib or (node.text or "").strip().lower() not in usual:
        return True
    return any(_asks(child, f"{path}/{child.tag}") for child in node.iterchildren("*"))
