"""Plans of tiny clusters against brute force: as many hosts, as few rounds, as few migrations as can be."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.planning.maintenance.site import MaintenanceOptions
from tests.builders import APART, DISABLED, SOFT_APART, TOGETHER, Part, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.maintenance.rolling import Rolling

_MOST_PLACEMENTS = 256


@st.composite
def tiny_sites(draw: st.DrawFn) -> Snapshot:
    """Two to four hosts and two to six VMs, of which as many can move as brute force bears."""
    hosts = [f"h{number}" for number in range(draw(st.integers(2, 4)))]
    names = [f"v{number}" for number in range(draw(st.integers(2, 6)))]
    parts: list[Part] = []
    for name in hosts:
        away = draw(st.integers(0, 9)) == 0
        free_mb = draw(st.sampled_from([0, 1024, 2048, 4096]))
        parts.append(host(name, free_mb=free_mb, status="maintenance" if away else "up"))
    up = [part.id for part in parts if part.up] or hosts[:1]  # type: ignore[union-attr]
    placements = 1
    for name in names:
        moves = placements * len(hosts) <= _MOST_PLACEMENTS and draw(st.integers(0, 9)) > 0
        placements *= len(hosts) if moves else 1
        size = draw(st.sampled_from([1024, 1024, 2048]))
        parts.append(vm(name, draw(st.sampled_from(up)), needs_mb=size, migratable=moves))
    members = st.lists(st.sampled_from(names), min_size=2, max_size=4, unique=True)
    listed = st.lists(st.sampled_from(hosts), min_size=1, max_size=3, unique=True)
    for number in range(draw(st.integers(0, 3))):
        of_hosts = draw(st.integers(0, 2)) == 0
        rule = draw(st.sampled_from([TOGETHER, APART, SOFT_APART]))
        parts.append(
            group(
                f"g{number}",
                DISABLED if of_hosts else rule,
                " ".join(draw(members)),
                hosts_rule=rule if of_hosts else DISABLED,
                hosts=" ".join(draw(listed)) if of_hosts else "",
            )
        )
    return snapshot(*parts)


@given(state=tiny_sites(), at_once=st.integers(1, 2), data=st.data())
@settings(max_examples=examples(30), deadline=None)
def test_no_plan_is_better(state: Snapshot, at_once: int, data: st.DataObject) -> None:
    known = [one.id for one in state.hosts]
    asked = data.draw(st.one_of(st.just(known), st.lists(st.sampled_from(known), min_size=1, unique=True)))
    plan = plan_maintenance(state, asked, MaintenanceOptions(at_once=at_once, explained=False))
    oracle = Rolling(state, asked, at_once)
    found, best = oracle.followed(plan), oracle.best()
    assert found == best
    assert plan.rounds_at_least <= best[1]
    assert plan.migrations_at_least <= best[2]
    assert found[0] == len(plan.blocked)
