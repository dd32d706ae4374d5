"""The weight of HA reservation: who is counted, and the order that follows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.ha.weight import HA_VMS_HERE, rank_hosts
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.verdict import Request
from tests.builders import CLUSTER, cluster, host, pending, snapshot, vm
from tests.placement.rules.strategies import HOSTS, VMS, snapshots

RESERVING = cluster(ha_reservation=True)
THREE_HOSTS = (host("h1"), host("h2"), host("h3"))


def ranks(state: Snapshot, vm_id: str, *, scale_down: int = 1) -> dict[str, int]:
    weights = rank_hosts(
        state,
        Request((vm_id,), ("h1", "h2", "h3"), parameters={"ha_weight_scale_down": str(scale_down)}),
    )
    return {weight.host: weight.rank for weight in weights}


def test_vm_being_moved_does_not_count_on_its_own_host() -> None:
    state = snapshot(RESERVING, *THREE_HOSTS, vm("a", "h1", ha=True), vm("b", "h2", ha=True))
    assert ranks(state, "a") == {"h1": 0, "h3": 0, "h2": 1}


def test_pending_vm_counts_where_it_is_going() -> None:
    state = snapshot(
        RESERVING,
        *THREE_HOSTS,
        vm("a", ha=True),
        vm("b", ha=True),
        vm("c", "h3", ha=True),
        pending("b", "h1"),
        pending("c", "h1"),
    )
    assert ranks(state, "a") == {"h2": 0, "h3": 0, "h1": 1}
    assert rank_hosts(state, Request(("a",), ("h1",)))[0].reasons == (Reason(HA_VMS_HERE, number=2),)


def test_scaling_down_makes_hosts_tie() -> None:
    state = snapshot(
        RESERVING,
        *THREE_HOSTS,
        vm("new", ha=True),
        vm("a", "h1", ha=True),
        vm("b", "h1", ha=True),
        vm("c", "h2", ha=True),
    )
    assert ranks(state, "new") == {"h3": 0, "h2": 1, "h1": 2}
    assert ranks(state, "new", scale_down=100) == {"h3": 0, "h2": 1, "h1": 1}


def test_vm_without_high_availability_ties_but_still_spares_the_failover_host() -> None:
    state = snapshot(
        RESERVING, host("h1", failover=True), host("h2"), host("h3"), vm("a"), vm("b", "h2", ha=True)
    )
    assert ranks(state, "a") == {"h2": 0, "h3": 0, "h1": 1}


@given(snapshots(), st.sampled_from(VMS))
def test_order_is_that_of_the_others_counted(state: Snapshot, vm_id: str) -> None:
    asked = next(one for one in state.vms if one.id == vm_id)
    going = {one.id: {entry.host for entry in state.pending if entry.vm == one.id} for one in state.vms}
    counts = {
        place: sum(
            one.ha and one.id != vm_id and one.cluster == CLUSTER and place in (going[one.id] or {one.host})
            for one in state.vms
        )
        for place in HOSTS
    }
    decides = asked.ha and state.clusters[0].ha_reservation
    found = {weight.host: weight.rank for weight in rank_hosts(state, Request((vm_id,), HOSTS))}
    for one in HOSTS:
        for other in HOSTS:
            assert (found[one] < found[other]) == (decides and counts[one] < counts[other])
