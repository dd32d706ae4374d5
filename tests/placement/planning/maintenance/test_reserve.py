"""A state of a maintenance is as safe as the beginning only where that is proven, whatever work it takes."""

import random
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning import reservation as failing
from ovirt_placement.planning.maintenance.site import Reserve
from tests.builders import CLUSTER, cluster
from tests.placement.planning.test_ha_repair import at, drawn, lost_hosts
from tests.placement.rules.failover.restarting import survives

ENOUGH = 1_000_000
#: Steps of a check that ends before all failures are judged, or just then.
BUDGETS = (0, 1, 2, 3, 4, 6, 10, ENOUGH)


def reserve_of(state: Snapshot, steps: int) -> Reserve:
    with mock.patch.object(failing, "DEFAULT_BUDGET", steps):
        return Reserve(state, CLUSTER, ())


def worse(reserve: Reserve, state: Snapshot, steps: int) -> bool:
    with mock.patch.object(failing, "DEFAULT_BUDGET", steps):
        return reserve.worse(state) is not None


def elsewhere(state: Snapshot, chance: random.Random) -> Snapshot:
    """One VM or two on other hosts; what is lost then may be more, less or the same."""
    where = {one.id: one.host for one in state.vms if one.host is not None}
    for vm in chance.sample(sorted(where), chance.randint(0, 2)):
        where[vm] = chance.choice([one.id for one in state.hosts])
    return at(state, where)


def protecting(chance: random.Random) -> Snapshot:
    """At least one VM is highly available."""
    state = drawn(chance)
    return replace(state, vms=(replace(state.vms[0], ha=True), *state.vms[1:]))


@given(st.integers(0, 10**6))
def test_nothing_that_is_not_proven_counts_as_safe(seed: int) -> None:
    chance = random.Random(seed)
    start = protecting(chance)
    state, known = elsewhere(start, chance), reserve_of(start, ENOUGH)
    before = {one.id: one.host for one in start.vms if one.host is not None}
    after = {one.id: one.host for one in state.vms if one.host is not None}
    more = len(lost_hosts(state, after)) > len(lost_hosts(start, before))
    answers = [worse(known, state, steps) for steps in BUDGETS]
    assert answers[0], "nothing was judged"
    assert all(answers) or not more
    assert answers == sorted(answers, reverse=True), "more work can only prove that it is as safe"
    assert not worse(known, start, ENOUGH)


@given(st.integers(0, 10**6))
def test_what_was_not_known_at_the_beginning_need_not_be_known_later(seed: int) -> None:
    chance = random.Random(seed)
    start = protecting(chance)
    unknown = reserve_of(start, 0)
    assert not worse(unknown, start, 0)
    state = elsewhere(start, chance)
    lost = [one.id for one in state.hosts if not survives(state, (one.id,))]
    assert worse(unknown, state, ENOUGH) is bool(lost)


@given(st.integers(0, 10**6))
def test_without_a_reservation_nothing_is_asked(seed: int) -> None:
    chance = random.Random(seed)
    state = replace(protecting(chance), clusters=(cluster(ha_reservation=False),))
    assert not worse(reserve_of(state, ENOUGH), elsewhere(state, chance), 0)
