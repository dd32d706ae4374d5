"""Lets the engine move a positive group as a whole, though it asks for one VM at a time.

It never offers the source among the hosts. Held to its peers there, no VM of such a group could ever
leave its host, and none could be put into maintenance. The engine's own filter has judged the group already.
"""

from __future__ import annotations

from collections.abc import Collection

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.reasons import ReasonKind
from ovirt_placement.rules.verdict import Request

GROUP_MOVES_ALONG = ReasonKind(
    "group_moves_along",
    "must run with VM {vm}, which is on host {host} too: the engine moves {group} as a whole",
)


def moves_with_its_peers(snapshot: Snapshot, request: Request, gathered: Collection[str]) -> bool:
    """Whether a migration takes a VM away from positive peers that are all on its own present host.

    `gathered` are the hosts that its peers are on.
    """
    if not request.as_engine or len(request.vms) != 1:
        return False
    vm = snapshot.vm_by_id.get(request.vms[0])
    present = None if vm is None else vm.host
    return present is not None and present not in request.candidate_hosts and set(gathered) == {present}
