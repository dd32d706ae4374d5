"""Draws clusters with all that filters look at: rules, pinning, pending placements, keys, policies."""

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import (
    AffinityGroup,
    Cluster,
    PlacementKey,
    PlacementRule,
    SchedulingPolicy,
    Snapshot,
    Vm,
)
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.elements.rule import UnitKind
from tests.builders import CLUSTER, TOGETHER, group, key, node_key
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.strategies import HOSTS, VMS, snapshots

FILTERS = tuple(name for name, rule in UNITS.items() if rule.kind is UnitKind.FILTER)
WEIGHTS = tuple(name for name, rule in UNITS.items() if rule.kind is UnitKind.WEIGHT)

_PARAMETERS = {
    "affinity_missing_unit": st.sampled_from(["report", "reject"]),
    "ha_measure": st.sampled_from(["resources", "vms"]),
    "ha_weight_scale_down": st.sampled_from(["1", "7", "100"]),
    "placement_final": st.sampled_from(["-10", "5"]),
    "placement_tie": st.just("engine"),
}


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    """What a cluster's policy enables, and its parameters; a policy may also be unknown."""
    filters = draw(st.sets(st.sampled_from(FILTERS)))
    weights = draw(st.dictionaries(st.sampled_from(WEIGHTS), st.integers(0, 3)))
    known = draw(st.integers(0, 5)) > 0
    return {
        "scheduling_policy": SchedulingPolicy(filters=tuple(sorted(filters)), weights=weights)
        if known
        else None,
        "scheduling_properties": draw(parameters()),
    }


@st.composite
def whole_policies(draw: st.DrawFn) -> dict[str, Any]:
    """A policy that enables all our filters, and some weights; of the engine's own weights some are off."""
    weights = draw(st.dictionaries(st.sampled_from(WEIGHTS), st.integers(0, 3)))
    return {
        "scheduling_policy": SchedulingPolicy(filters=FILTERS, weights=weights),
        "scheduling_properties": draw(parameters()),
        "policy": draw(st.sampled_from([{}, {"vm_affinity_weight": 0}])),
    }


def parameters() -> st.SearchStrategy[dict[str, str]]:
    """Parameters of the units; nothing is left to chance."""
    drawn = st.fixed_dictionaries({}, optional=_PARAMETERS)
    return drawn.map(lambda some: {**some, "placement_tie": "engine"})


@st.composite
def keys(draw: st.DrawFn) -> tuple[PlacementKey, ...]:
    """One key of the operator on all hosts and on some VMs."""

    values, weights = st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([-50.0, 60.0])
    placed = draw(st.sets(st.sampled_from(VMS), max_size=3))
    return (
        *(node_key(host, "SAN", draw(values)) for host in HOSTS),
        *(key("SAN", draw(values), draw(weights), resource=vm) for vm in sorted(placed)),
    )


@st.composite
def odd_groups(draw: st.DrawFn) -> tuple[AffinityGroup, ...]:
    """Groups that the engine's own filters take in another way than ours do."""
    one, other, third = draw(st.permutations(VMS))[:3]
    chain = (group("link1", TOGETHER, f"{one} {other}"), group("link2", TOGETHER, f"{other} {third}"))
    abroad = (group("abroad", TOGETHER, one, vm_labels=("lab1",)),)
    nowhere = (group("nowhere", vms=one, hosts_rule=TOGETHER),)
    return draw(st.sampled_from([(), chain, abroad, nowhere]))


@st.composite
def ruled_by(draw: st.DrawFn, kind: str | None) -> tuple[PlacementRule, ...]:
    """Placement rules; of a kind, the first."""
    more = (draw(placement_rules(f"r{number}", VMS, HOSTS)) for number in range(draw(st.integers(0, 2))))
    if kind is None:
        return tuple(more)
    return (draw(placement_rules("first", VMS, HOSTS, (kind,), enforcing=True)), *more)


@st.composite
def worlds(
    draw: st.DrawFn,
    policy: st.SearchStrategy[dict[str, Any]],
    memory: tuple[int, ...] = (512, 4096),
    kind: str | None = None,
) -> Snapshot:
    """A world; `memory` is what a host may have left to hand out, in MiB.

    It has some placement rules, or a hard one of a kind and perhaps others.
    """
    state = draw(snapshots())
    ruling = draw(policy)

    def ruled(one: Cluster) -> Cluster:
        return replace(one, **ruling) if one.id == CLUSTER else one

    gathered = VMS[: draw(st.sampled_from([2, 3, 0]))]

    def pinned(one: Vm) -> Vm:
        pinning = draw(st.sampled_from([(), ("h1",), ("h2", "h3")]))
        there = {"host": "h1", "status": "up"} if one.id in gathered else {}
        return replace(one, pinned_hosts=pinning, **there)

    near = (group("near", TOGETHER, " ".join(gathered)),) if gathered else ()
    return replace(
        state, affinity_groups=(*state.affinity_groups, *near, *draw(odd_groups())),
        pending=tuple(one for one in state.pending if one.vm not in gathered),
        clusters=tuple(map(ruled, state.clusters)),
        hosts=tuple(replace(one, free_mb=draw(st.sampled_from(memory))) for one in state.hosts),
        vms=tuple(map(pinned, state.vms)), placement_keys=draw(keys()), placement_rules=draw(ruled_by(kind)),
    )  # fmt: skip
