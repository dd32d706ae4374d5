"""Draws placement rules of every kind, over few VMs and hosts, so that they collide often."""

from typing import Any

from hypothesis import strategies as st

from ovirt_placement.model import PlacementRule, RuleDomain
from ovirt_placement.rules.placement_rules.in_force import KINDS
from tests.builders import rule


@st.composite
def placement_rules(
    draw: st.DrawFn,
    name: str,
    vms: tuple[str, ...],
    hosts: tuple[str, ...],
    kinds: tuple[str, ...] = tuple(KINDS),
    *,
    enforcing: bool | None = None,
) -> PlacementRule:
    """One rule; its domains may leave out a host."""
    kind = draw(st.sampled_from(kinds))
    members = draw(st.lists(st.sampled_from(vms), min_size=1, max_size=len(vms), unique=True))
    fields: dict[str, Any] = {
        "enforcing": draw(st.sampled_from([True, True, False])) if enforcing is None else enforcing,
        "priority": draw(st.sampled_from([1.0, 1.0, 5.0])),
    }
    if kind == "separate":
        cut = draw(st.integers(1, len(members)))
        fields["other_vms"], members = " ".join(members[cut:]) or _other(vms, members), members[:cut]
    if kind in ("exclusive_hosts", "capacity"):
        chosen = draw(st.lists(st.sampled_from(hosts), min_size=1, max_size=2, unique=True))
        fields["hosts"] = " ".join(chosen)
    if kind in ("at_most_per_host", "at_most_per_domain"):
        fields["most"] = draw(st.integers(1, 2))
    if kind == "capacity":
        fields["counted"] = draw(st.sampled_from(["vms", "vcpus"]))
        fields["most"] = draw(st.integers(0, 4))
    if kind == "spread":
        fields["max_skew"] = draw(st.integers(1, 2))
        fields["min_domains"] = draw(st.sampled_from([None, 2, 3]))
    if kind == "minimum_domains":
        fields["least"] = draw(st.integers(1, 3))
    if kind in ("at_most_per_domain", "spread", "minimum_domains", "same_domain"):
        fields["domains"] = draw(domains(hosts))
    listed = () if kind == "capacity" and draw(st.booleans()) else members
    return rule(name, kind, " ".join(listed), **fields)


@st.composite
def domains(draw: st.DrawFn, hosts: tuple[str, ...]) -> tuple[RuleDomain, ...]:
    where = {host: draw(st.sampled_from(["r1", "r2", "r3", "r1", "r2", None])) for host in hosts}
    where[hosts[0]] = "r1"
    found = {one: tuple(host for host in hosts if where[host] == one) for one in ("r1", "r2", "r3")}
    return tuple(RuleDomain(name=one, hosts=own) for one, own in found.items() if own)


def _other(vms: tuple[str, ...], members: list[str]) -> str:
    """A VM that is no member, or the last one, which is then in both sets."""
    return next((vm for vm in vms if vm not in members), members[-1])
