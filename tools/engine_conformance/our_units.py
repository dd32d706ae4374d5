"""Our own units, which stand next to the engine's or in their place, and differ as docs/rules.md says."""

from __future__ import annotations

from ovirt_placement.rules.affinity import host_filter, host_weight, vm_filter, vm_weight
from ovirt_placement.rules.ha import rank_hosts
from tools.engine_conformance import product
from tools.engine_conformance.our_switches import (
    EMPTY_HOST_GROUP,
    LEFT_BEHIND,
    NO_RULES,
    NOT_ITSELF,
    NOTHING_TO_PROTECT,
    PENDING_AS_IT_IS,
    PENDING_HA,
    PENDING_TWICE,
    PERCENT_OF_CPUS,
    UNIFIED_GROUPS,
    conflicts_alike,
    exact,
    refined,
)
from tools.engine_conformance.reading import Agreement, as_hosts, as_tiers, same
from tools.engine_conformance.requests import of_cluster, placing_one
from tools.engine_conformance.switches import CRASH_OF_A_HOST_ASIDE, MEMBERS_ELSEWHERE
from tools.engine_conformance.unit import FEWER, Copy, Unit


def _ours(name: str, kind: str, engine_class: str, copy: Copy, agree: Agreement) -> Unit:
    return Unit(name, kind, placing_one, {"product": copy}, agree, request={"unit": engine_class})


OURS = (
    _ours(
        "AffinityFilter",
        "filter",
        "VmAffinityFilterPolicyUnit",
        Copy(
            product.accepted(vm_filter.filter_hosts),
            (UNIFIED_GROUPS, LEFT_BEHIND, CRASH_OF_A_HOST_ASIDE),
            beforehand=(MEMBERS_ELSEWHERE,),
        ),
        same(as_hosts),
    ),
    _ours(
        "HostAffinityFilter",
        "filter",
        "VmToHostAffinityFilterPolicyUnit",
        Copy(
            product.accepted(host_filter.filter_hosts), (EMPTY_HOST_GROUP,), beforehand=(MEMBERS_ELSEWHERE,)
        ),
        same(as_hosts),
    ),
    _ours(
        "SoftAffinityWeight",
        "weight",
        "VmAffinityWeightPolicyUnit",
        Copy(product.ranks(vm_weight.rank_hosts), (PENDING_AS_IT_IS,), beforehand=(MEMBERS_ELSEWHERE,)),
        refined,
    ),
    _ours(
        "HostAffinityWeight",
        "weight",
        "VmToHostAffinityWeightPolicyUnit",
        Copy(product.ranks(host_weight.rank_hosts), beforehand=(MEMBERS_ELSEWHERE,)),
        same(as_tiers),
    ),
    _ours(
        "HaReservationWeight",
        "weight",
        "HaReservationWeightPolicyUnit",
        Copy(product.ranks(rank_hosts), (NOT_ITSELF, PENDING_HA)),
        same(as_tiers),
    ),
    Unit(
        "ha-check-exact",
        "ha_check",
        of_cluster,
        {
            "product": Copy(
                product.ha_check, (NOTHING_TO_PROTECT,), beforehand=(PENDING_TWICE, PERCENT_OF_CPUS, NO_RULES)
            )
        },
        exact,
        FEWER,
    ),
    Unit(
        "conflicts-alike",
        "conflicts",
        of_cluster,
        {"product": Copy(product.conflicts, beforehand=(MEMBERS_ELSEWHERE,))},
        conflicts_alike,
        FEWER,
    ),
)
