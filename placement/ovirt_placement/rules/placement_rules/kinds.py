"""Every kind of placement rule once."""

from __future__ import annotations

from ovirt_placement.rules.placement_rules import (
    at_most_per_domain,
    at_most_per_host,
    capacity,
    exclusive_hosts,
    minimum_domains,
    restart_after,
    same_domain,
    separate,
    spread,
)
from ovirt_placement.rules.placement_rules.kind import PlacementKind, RuleKind

#: Those that ask where VMs run, by name.
KINDS: dict[str, PlacementKind] = {
    kind.name: kind
    for kind in (
        at_most_per_host.KIND,
        at_most_per_domain.KIND,
        spread.KIND,
        minimum_domains.KIND,
        same_domain.KIND,
        separate.KIND,
        exclusive_hosts.KIND,
        capacity.KIND,
    )
}
#: By name, in the order in which they are shown.
EVERY_KIND: dict[str, RuleKind] = {**KINDS, restart_after.KIND.name: restart_after.KIND}
