"""The unit that prefers the hosts that placement keys find first."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.placement_keys import placing
from ovirt_placement.rules.placement_keys.key_filter import complaints
from ovirt_placement.rules.placement_keys.parameters import PARAMETERS, settings_of
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Weight

#: More than all usual weights together can give in a cluster of 600 hosts.
_USUAL_FACTOR = 100_000


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank hosts by the policy's parameters; the details of a weight are the host's `HostDecision`.

    Where `placement_tie` leaves ties to the engine, the lots that the request holds are not used.
    """
    drawn = () if request.parameters.get("placement_tie") == "engine" else request.drawn
    settings = settings_of(request.parameters)
    return placing.rank_hosts(snapshot, request, settings, tie_order=drawn, explained=request.explained)


RULE = Rule(
    name="PlacementKeyWeight",
    kind=UnitKind.WEIGHT,
    parameters=f"{PARAMETERS};placement_tie=(random|engine)",
    complaints=complaints,
    on_request=True,
    usual_factor=_USUAL_FACTOR,
    draws=True,
    reads_hosts=True,
    weight=rank_hosts,
)
