"""Every kind of placement rule once."""

from __future__ import annotations

from ovirt_placement.rules.placement_rules import (
    at_most_per_domain,
    at_most_per_host,
    capacity,
    exclusive_hosts,
    minimum_domains,
    same_domain,
    separate,
    spread,
)
from ovirt_placement.rules.placement_rules.kind import RuleKind

#: By name, in the order in which they are shown.
KINDS: dict[str, RuleKind] = {
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
