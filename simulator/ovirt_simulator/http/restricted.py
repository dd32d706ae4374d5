"""Filtered queries: those of users who are no admins, or of admins with `filter=true`.

They show what the user has permissions on. What the engine asks of admins alone it refuses then; and of
disks, storage domains, networks, vNIC profiles and instance types the simulator does not know who sees them.
"""

from __future__ import annotations

from ovirt_simulator.http.answers import denied, not_simulated
from ovirt_simulator.http.call import Call

#: Addresses of queries that the engine answers to admins only, and never filtered.
_FOR_ADMINS = frozenset(
    {
        "/bookmarks",
        "/cpuprofiles",
        "/diskprofiles",
        "/hosts/<host_id>/tags",
        "/jobs",
        "/macpools",
        "/macpools/<pool_id>",
        "/storagedomains/<domain_id>/disks",
        "/tags",
        "/tags/<tag_id>",
        "/templates/<template_id>/tags",
        "/vms/<vm_id>/tags",
    }
)
#: Collections of which the state does not say who sees what.
_UNKNOWN = frozenset({"disks", "instancetypes", "networks", "storagedomains", "vnicprofiles"})


def check_reading(call: Call, pattern: str) -> None:
    """Refuse a filtered query at an address (its pattern) that has none, or of which nobody here knows it."""
    if not call.filtered:
        return
    if pattern in _FOR_ADMINS:
        raise denied()
    if pattern.split("/")[1] in _UNKNOWN:
        raise not_simulated(f"what filtered queries show of {pattern}")
