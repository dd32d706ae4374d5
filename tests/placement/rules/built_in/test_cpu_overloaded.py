"""The engine's filter CPUOverloaded against its definition, and where it is asked."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.answers.placement import why
from ovirt_placement.model import SchedulingPolicy, Snapshot
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.rules.built_in.filters import CPU_OVERLOADED_FILTER, filter_by_cpu_load
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.failover.check import check
from ovirt_placement.rules.verdict import Request
from tests import builders as build

HOSTS = ("h1", "h2", "h3")


@st.composite
def busy(draw: st.DrawFn) -> Snapshot:
    """Hosts around the limits, some of which nothing is known."""
    percent = st.none() | st.sampled_from([0, 49.9, 50, 51, 79, 80, 81, 89, 90, 91, 99.9, 100])
    hosts = [
        build.host(
            name,
            cpu_percent=draw(percent),
            cores=draw(st.integers(1, 12)),
            threads=draw(st.none() | st.integers(2, 24)),
            spm=draw(st.booleans()),
            measured=draw(st.booleans()),
        )
        for name in HOSTS
    ]
    return build.snapshot(build.cluster(count_threads_as_cores=draw(st.booleans())), *hosts, build.vm("v"))


@given(busy(), st.none() | st.sampled_from(["50", "80", "90", "99", "", "ninety"]))
def test_hosts_that_use_more_than_the_limit_are_refused(state: Snapshot, limit: str | None) -> None:
    """In whole percents, rounded up; the host that manages storage bears a tenth of a CPU more."""
    most = int(limit) if limit is not None and limit.isdigit() else 90
    accepted = []
    for host in state.hosts:
        cpus = host.threads if state.clusters[0].count_threads_as_cores and host.threads else host.cores
        if host.cpu_percent is None:
            refused = host.measured
        else:
            refused = ceil((int(host.cpu_percent) * cpus + (10 if host.spm else 0)) / cpus) > most
        if not refused:
            accepted.append(host.id)
    parameters = {} if limit is None else {"HighUtilization": limit}
    verdicts = filter_by_cpu_load(state, Request(("v",), HOSTS, parameters=parameters))
    assert [verdict.host for verdict in verdicts if verdict.accepted] == accepted


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (None, True),
        (SchedulingPolicy(filters=("AffinityFilter",)), True),
        (SchedulingPolicy(engine_filters=("CPU", "CPUOverloaded")), True),
        (SchedulingPolicy(engine_filters=("CPU", "Memory")), False),
    ],
)
def test_it_is_asked_unless_the_policy_is_known_to_lack_it(
    policy: SchedulingPolicy | None, *, asked: bool
) -> None:
    found = filters_in_force(build.cluster(scheduling_policy=policy))
    assert (CPU_OVERLOADED_FILTER in found) is asked


def test_why_says_so() -> None:
    state = build.snapshot(
        build.cluster(scheduling_properties={"HighUtilization": "80"}),
        build.host("h1", cpu_percent=81),
        build.host("h2", cpu_percent=80),
        build.vm("v"),
    )
    refused, accepted = why(state, state.vms[0], state.hosts).hosts
    assert accepted.accepted
    (reason,) = refused.reasons
    assert "its CPU is too loaded: 81 % are in use" in reason.sentence
    assert [(unit.name, unit.internal) for unit in reason.by] == [("CPUOverloaded", True)]


@pytest.mark.parametrize(("percent", "open_to_vms"), [(90, True), (91, False)])
def test_no_plan_goes_there_and_no_restart_counts_on_it(percent: int, *, open_to_vms: bool) -> None:
    hosts = build.host("h1"), build.host("h2", cpu_percent=percent)
    vms = build.vm("a", "h1", ha=True), build.vm("b", "h1")
    apart = build.snapshot(build.cluster(), *hosts, *vms, build.group("apart", build.APART, "a b"))
    targets = [step.target for step in make_plan(apart, build.CLUSTER).steps]
    assert targets == (["h2"] if open_to_vms else [])
    reserved = build.snapshot(build.cluster(ha_reservation=True), *hosts, *vms)
    assert check(reserved, build.CLUSTER).safe is open_to_vms
