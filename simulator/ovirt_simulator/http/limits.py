"""What the engine's API has and the simulator does not: asked for, it is refused, and never quietly left out.

What a client sends for `false`, or empty, asks for nothing and passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lxml import etree

from ovirt_simulator.http.answers import not_simulated

#: Parameters of the API that would change an answer; all others are either known here or the engine's API
#: does not know them, and it reads past those.
_PARAMETERS = frozenset(
    {"async", "destroy", "detail", "force", "JobId", "legacy", "next_run", "refresh", "StepId"}
)
#: Those that are known elsewhere, or mean nothing there: by method and pattern of the address.
_PARAMETERS_AT = {
    ("GET", "/"): frozenset({"rsdl", "schema"}),
    ("GET", "/options/<name>"): frozenset({"version"}),
    ("PUT", "/vms/<vm_id>"): frozenset({"filter"}),
}
_NOTHING = ("false", "f", "no", "n", "0")

#: By the root of a body: the elements that count, by their paths, and behind `|` those that are read past
#: with all that is below, as documented. What refers to an entity by its id may show more of it, which counts
#: for nothing. Among what is read past is what an engine shows and takes from no client.
_ELEMENTS = {
    "affinity_group": "name description priority positive enforcing cluster "
    "vms_rule/enabled vms_rule/positive vms_rule/enforcing "
    "hosts_rule/enabled hosts_rule/positive hosts_rule/enforcing "
    "vms/vm hosts/host vm_labels/affinity_label host_labels/affinity_label | broken comment",
    "affinity_label": "name vms/vm hosts/host has_implicit_affinity_group | comment description",
    "host": "| name",
    "nic": "name vnic_profile",
    "disk_attachment": "bootable disk | active interface",
    "permission": "role role/name user group",
    "balance": "scheduling_policy_unit | name",
    "cluster": "description scheduling_policy scheduling_policy/name ha_reservation name "
    "custom_scheduling_policy_properties/property/name custom_scheduling_policy_properties/property/value "
    "comment threads_as_cores memory_policy/over_commit/percent data_center data_center/name "
    "| cpu upgrade_in_progress upgrade_percent_complete",
    "event": "origin severity custom_id description cluster data_center host vm user flood_rate custom_data "
    "time correlation_id "
    "| cluster/name code data_center/name host/name index name template/name user/user_name vm/name",
    "filter": "position scheduling_policy_unit | name",
    "job": "description | auto_cleared external status",
    "scheduling_policy": "name description properties/property/name properties/property/value "
    "| balances filters weight",
    "tag": "name",
    "vm": "name description cluster cluster/name high_availability/enabled high_availability/priority "
    "memory memory_policy/guaranteed "
    "custom_properties/custom_property/name custom_properties/custom_property/value "
    "placement_policy/affinity placement_policy/hosts/host placement_policy/hosts/host/name "
    "| host os memory_policy/max status template",
    "weight": "factor scheduling_policy_unit | name",
}
#: The same of actions, by the last step of their addresses; and what every action may have.
_OF_EVERY_ACTION = "| filter"
_ACTIONS = {
    "deactivate": "reason",
    "end": "succeeded | force",
    "migrate": "cluster force host host/name migrate_vms_in_affinity_closure",
    "shutdown": "| force reason",
    "start": "vm/placement_policy/hosts/host vm/placement_policy/hosts/host/name "
    "| use_cloud_init use_sysprep use_initialization vm/bios vm/cdroms vm/console vm/display vm/floppies "
    "vm/initialization vm/name vm/os vm/stateless",
    "stop": "| force reason",
    "upgrade": "upgrade_action upgrade_percent_complete reboot | image timeout",
}
#: Any element may have these of the entity that it began as, and the engine does not take them from there.
_EVERYWHERE = frozenset({"actions", "link"})


def check_parameters(method: str, pattern: str, parameter: Callable[[str], str | None]) -> None:
    """Refuse a parameter that the engine would act on at an address of this pattern."""
    for name in sorted(_PARAMETERS | _PARAMETERS_AT.get((method, pattern), frozenset())):
        asked = parameter(name)
        if asked is not None and asked.lower() not in _NOTHING:
            raise not_simulated(f"the parameter {name!r}")


def check_body(root: etree._Element, step: str) -> None:
    """Refuse a body with an element that neither counts nor is said to be read past.

    `step` is the last one of the address: of actions, the name.
    """
    known = _KNOWN_OF_ACTIONS.get(step, _ANY_ACTION) if root.tag == "action" else _KNOWN.get(str(root.tag))
    for path, node in _unknown(root, known or _Element(), str(root.tag)):
        if _asks(node):
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
        known.at(path).counts = True
    return known


_KNOWN = {root: _known(paths) for root, paths in _ELEMENTS.items()}
_ANY_ACTION = _known(_OF_EVERY_ACTION)
_KNOWN_OF_ACTIONS = {
    name: _known(f"{paths} {'' if '|' in paths else '|'} filter") for name, paths in _ACTIONS.items()
}


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


def _asks(node: etree._Element) -> bool:
    """Say whether an element asks for anything: it, or what is below it, has an id or a text but `false`."""
    if "id" in node.attrib or (node.text or "").strip().lower() not in ("", "false"):
        return True
    return any(_asks(child) for child in node.iterchildren("*"))
