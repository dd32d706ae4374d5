"""Constraints against their invariants, and against the filters, which ask the same of one migration."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.affinity.constraints import Apart, OffHosts, OnHosts, Together
from ovirt_placement.rules.affinity.filters import filter_by_hosts, filter_by_vms
from ovirt_placement.rules.elements.constraints import Constraint
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.verdict import Request
from tests.builders import CLUSTER
from tests.placement.rules.strategies import HOSTS, VMS, snapshots


def running_hosts(state: Snapshot, constraint: Constraint) -> list[str]:
    hosts = (one.host for one in state.vms if one.id in constraint.vms)
    return [host for host in hosts if host is not None]


def kept(state: Snapshot, constraint: Constraint) -> bool:
    """The invariants, as their files state them."""
    hosts = running_hosts(state, constraint)
    if isinstance(constraint, Together):
        return len(set(hosts)) <= 1
    if isinstance(constraint, Apart):
        return len(set(hosts)) == len(hosts)
    assert isinstance(constraint, OnHosts)
    wanted = isinstance(constraint, OffHosts)
    return all((host in constraint.hosts) is not wanted for host in hosts)


@given(snapshots())
def test_a_constraint_is_kept_violated_and_short_of_moves_all_at_once(state: Snapshot) -> None:
    placement = SnapshotPlacement(state)
    for constraint in catalogue.constraints(state, CLUSTER):
        right = kept(state, constraint)
        assert constraint.keeps(placement) is right
        assert (constraint.surplus(placement) == 0) is right
        assert (not constraint.offenders(placement)) is right
        assert constraint.surplus(placement) <= len(constraint.offenders(placement))


@given(snapshots(), st.sampled_from(VMS))
def test_hard_constraints_admit_what_the_filters_accept(state: Snapshot, vm: str) -> None:
    placement = SnapshotPlacement(state)
    hard = [one for one in catalogue.constraints(state, CLUSTER) if one.hard and vm in one.vms]
    together = [one for one in hard if isinstance(one, Together)]
    others = [one for one in hard if one not in together]
    request = Request((vm,), HOSTS)
    accepted = {
        host for host in HOSTS if all(one.admits(vm, host, placement) for one in (*together, *others))
    }
    by_filters = {verdict.host for verdict in filter_by_vms(state, request) if verdict.accepted}
    by_filters &= {verdict.host for verdict in filter_by_hosts(state, request) if verdict.accepted}
    shut_out = any(one.implicit and vm in one.vms and not one.hosts for one in state.affinity_labels)
    assert by_filters == (accepted if not shut_out or by_filters else set())


@given(snapshots(), st.sampled_from(VMS), st.sampled_from(HOSTS))
def test_an_admitted_move_never_makes_more_moves_necessary(state: Snapshot, vm: str, host: str) -> None:
    """But for positive groups, of which a split one may be joined on any of its hosts."""
    before = SnapshotPlacement(state)
    for constraint in catalogue.constraints(state, CLUSTER):
        if vm not in constraint.vms or isinstance(constraint, Together):
            continue
        if constraint.admits(vm, host, before) and before.runs_on(vm) is not None:
            moved = _moved(state, vm, host)
            assert constraint.surplus(SnapshotPlacement(moved)) <= constraint.surplus(before)


def _moved(state: Snapshot, vm: str, host: str) -> Snapshot:
    return replace(state, vms=tuple(replace(one, host=host) if one.id == vm else one for one in state.vms))
