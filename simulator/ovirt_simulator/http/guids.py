"""Ids in bodies that are no UUIDs, which an engine cannot read: it refuses them before it looks for anything.

Where the state's own ids are none either, any will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lxml import etree

from ovirt_simulator.http.answers import MALFORMED_ID, fault

#: As Java reads one: five groups, of which leading zeros may be left out.
_UUID = re.compile("[0-9a-fA-F]{1,8}(-[0-9a-fA-F]{1,4}){3}-[0-9a-fA-F]{1,12}")
#: Elements whose ids are read so; others have names for ids, or those of a directory.
_NAMES = (
    "affinity_label cluster cpu_profile data_center disk disk_profile host instance_type mac_pool quota role "
    "scheduling_policy scheduling_policy_unit storage_domain template vm vnic_profile"
)
_ENTITIES = frozenset(_NAMES.split())


def are_uuids(ids: Iterable[str]) -> bool:
    return all(_UUID.fullmatch(each) for each in ids)


def check(root: etree._Element) -> None:
    """Refuse a body that refers to anything by an id that is no UUID."""
    for node in root.iter(*_ENTITIES):
        given = node.get("id")
        if given and not _UUID.fullmatch(given):
            raise fault(400, f"Invalid UUID string: {given}", MALFORMED_ID)
