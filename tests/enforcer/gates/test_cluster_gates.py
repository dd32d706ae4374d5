"""Gates that close a cluster, or a host of it: an upgrade, a maintenance, and what goes on there already."""

from __future__ import annotations

import pytest

from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import IntentState
from tests.builders import Part, cluster, host, pending, snapshot, vm

from .judging import PARTS, admitted, closed, gates, intent, step

DONE, FAILED, ACCEPTED = IntentState.DONE, IntentState.FAILED, IntentState.ACCEPTED
#: Others that migrate in the same cluster, on hosts of their own, and in another one.
NEIGHBOURS: tuple[Part, ...] = (
    *(host(f"n{number}") for number in range(4)),
    vm("n1", "n0", migrating_to="n1", status="migrating"),
    vm("n2", "n2", status="migrating"),
    cluster(),
    cluster("other"),
    host("far", cluster="other"),
    vm("f1", "far", cluster="other", status="migrating"),
)


def limited(**limits: int) -> EnforcerSettings:
    return EnforcerSettings(mode=Mode.ENFORCE, **limits)


def test_a_cluster_that_is_upgraded_is_left_alone() -> None:
    parts = (*PARTS, cluster(upgrade_mode=True, upgrade_correlation_id="role-2024"))
    assert closed(gates(), *parts) == ("cluster_upgrade", "the cluster is being upgraded (role-2024)")
    unknown = (*PARTS, cluster(upgrade_mode=True))
    assert closed(gates(), *unknown) == ("cluster_upgrade", "the cluster is being upgraded")
    own, others = (
        (*PARTS, cluster(upgrade_mode=True, upgrade_correlation_id=by)) for by in ("maintenance-1", "x")
    )
    asked = gates(own_upgrades=frozenset({"maintenance-1"}))
    assert admitted(asked, *own)
    assert closed(asked, *others)[0] == closed(gates(), *own)[0] == "cluster_upgrade"


@pytest.mark.parametrize("host_id", ["h1", "h2"])
@pytest.mark.parametrize(
    ("status", "words"),
    [("maintenance", "is in maintenance"), ("preparing_for_maintenance", "goes into maintenance")],
)
def test_a_host_in_maintenance_is_left_alone(host_id: str, status: str, words: str) -> None:
    parts = (*(part for part in PARTS if part.id != host_id), host(host_id, status=status))
    assert closed(gates(), *parts) == ("host_maintenance", f"host {host_id} {words}")


def test_the_planner_knows_of_hosts_in_maintenance_and_their_vms() -> None:
    state = snapshot(*PARTS[1:], host("h1", status="preparing_for_maintenance"))
    reason = "host h1 goes into maintenance"
    assert gates().frozen(state) == {"a": reason, "b": reason}
    assert gates().frozen_hosts(state) == {"h1": reason}


@pytest.mark.parametrize(("limit", "passes"), [(3, False), (4, True)])
def test_migrations_in_the_whole_engine_are_limited(limit: int, passes: bool) -> None:
    asked = gates(limited(migrations_at_once=limit))
    if passes:
        assert admitted(asked, *PARTS, *NEIGHBOURS)
    else:
        reason = "migrations under way in the engine: 3, and migrations_at_once lets no more join"
        assert closed(asked, *PARTS, *NEIGHBOURS) == ("engine_at_once", reason)


@pytest.mark.parametrize(("limit", "passes"), [(2, False), (3, True)])
def test_migrations_in_a_cluster_are_limited(limit: int, passes: bool) -> None:
    asked = gates(limited(cluster_migrations_at_once=limit))
    if passes:
        assert admitted(asked, *PARTS, *NEIGHBOURS)
    else:
        reason = "migrations under way here: 2, and cluster_migrations_at_once lets no more join"
        assert closed(asked, *PARTS, *NEIGHBOURS) == ("cluster_at_once", reason)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ({"source": "h1", "target": "n3"}, "from h1: 1, and host_migrations_out lets no more join"),
        ({"source": "n3", "target": "h2"}, "to h2: 1, and host_migrations_in lets no more join"),
    ],
)
def test_migrations_from_and_to_a_host_are_limited(ends: dict[str, str], words: str) -> None:
    parts = (*PARTS, host("n3"), vm("c", ends["source"]))
    under_way = [intent(ACCEPTED, 1, "c", None, **ends)]
    tight = limited(host_migrations_out=1, host_migrations_in=1)
    assert closed(gates(tight, under_way), *parts) == ("host_at_once", f"migrations under way {words}")
    assert admitted(gates(limited(), under_way), *parts)


def test_a_start_is_no_migration() -> None:
    parts = (*PARTS, vm("other"), pending("other", "h2"))
    assert admitted(gates(limited(migrations_at_once=1, host_migrations_in=1)), *parts, *NEIGHBOURS[:4])


def test_a_group_that_moves_at_once_passes_alone_where_it_is_more_than_the_limit() -> None:
    parts = (host("h1"), host("h2"), host("n1"), vm("a", "h1"), vm("b", "h1"), vm("c", "h1"), vm("d", "h1"))
    whole, single = step("a b c", groups=""), step("d", groups="")
    assert admitted(gates(), *parts, of=whole)
    after_another = gates()
    assert admitted(after_another, *parts, of=single)
    assert closed(after_another, *parts, of=whole)[0] == "host_at_once"
    before_another = gates()
    assert admitted(before_another, *parts, of=whole)
    assert closed(before_another, *parts, of=single)[0] == "host_at_once"


def test_a_cluster_has_a_limit_of_its_own() -> None:
    history = tuple(intent(DONE, 100, vm_id=f"vm{number}") for number in range(120))
    reason = "migrations in the last hour: 120, and cluster_migrations_per_hour lets no more follow"
    assert closed(gates(history=history)) == ("cluster_limit", reason)
    assert admitted(gates(history=history[1:]))


def test_what_is_under_way_counts_for_the_hour_and_what_was_refused_does_not() -> None:
    few = limited(cluster_migrations_per_hour=2)
    refused = intent(FAILED, 1, "c", "no room", cause=Cause.TARGET_REFUSED)
    under_way = [intent(ACCEPTED, 3000, "d", None, source="n0", target="n1")]
    parts = (*PARTS, host("n0"), host("n1"), vm("d", "n0"))
    assert admitted(gates(few, under_way, history=(refused,)), *parts)
    assert closed(gates(few, under_way, history=(intent(DONE, 1, "c"),)), *parts)[0] == "cluster_limit"


def test_a_migration_counts_from_its_begin() -> None:
    few = limited(cluster_migrations_per_hour=1)
    long_one = intent(DONE, 10, "c", created=0.0, updated=3595.0)
    assert admitted(gates(few, history=(long_one,)))
    assert closed(gates(few, history=(intent(DONE, 10, "c"),)))[0] == "cluster_limit"


def test_a_cycle_has_a_limit() -> None:
    few = limited(cluster_migrations_per_cycle=2)
    lately = (intent(DONE, 20, "c"), intent(DONE, 59, "d"))
    reason = "migrations within this cycle: 2, and cluster_migrations_per_cycle lets no more follow"
    assert closed(gates(few, history=lately)) == ("cluster_cycle_limit", reason)
    assert admitted(gates(few, history=(lately[0], intent(DONE, 61, "d"))))
