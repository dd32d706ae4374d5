"""The unit that prefers the hosts that placement keys find first."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.hard_weight import parting_hosts
from ovirt_placement.rules.placement_keys import placing
from ovirt_placement.rules.placement_keys.key_filter import complaints
from ovirt_placement.rules.placement_keys.settings import settings_of
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Weight

#: More than all usual weights together can give in a cluster of 600 hosts.
_USUAL_FACTOR = 100_000


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank hosts by the policy's parameters; the details of a weight are the host's `HostDecision`.

    Ties are drawn by the lots that the request holds, unless `placement_tie` leaves them to the engine or no
    key says anything of the VM: this unit usually leads, and a lot would outvote all other weights. For the
    same reason hosts that would tear a chain of hard affinity groups come last.
    """
    drawn = request.drawn if _draws(snapshot, request) else ()
    return placing.rank_hosts(
        snapshot,
        request,
        settings_of(request.parameters),
        tie_order=drawn,
        last={host for vm in request.vms for host in parting_hosts(snapshot, vm, request.candidate_hosts)},
        explained=request.explained,
    )


def _draws(snapshot: Snapshot, request: Request) -> bool:
    if request.parameters.get("placement_tie") == "engine":
        return False
    compiled = (placing.compiled_keys(snapshot, vm) for vm in request.vms)
    return any(keys.system or keys.customer for keys in compiled)


RULE = Rule(
    name="PlacementKeyWeight",
    kind=UnitKind.WEIGHT,
    complaints=complaints,
    on_request=True,
    usual_factor=_USUAL_FACTOR,
    draws=True,
    reads_hosts=True,
    weight=rank_hosts,
)
