"""A whole placement, against the specification written down a second time in the simplest way."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import PlacementKey
from ovirt_placement.rules.placement_keys.compile import compile_keys
from ovirt_placement.rules.placement_keys.decision import Decision, HostState, decide, decide_local
from tests.placement.rules.placement_keys.parts import capacity, host_state, key

NAMES = ["A", "B", "C"]
VALUES = st.sampled_from([0.0, 0.1, 0.25, 0.7, 1.0, 1.5, 2.0])
WEIGHTS = st.sampled_from([-200.0, -100.0, -10.0, -0.1, 10.0, 33.3, 80.0, 100.0])

OwnKeys = dict[str, float]
FrozenKeys = tuple[tuple[tuple[str, float], ...], ...]
Hosts = list[tuple[str, OwnKeys, FrozenKeys]]
VmKeys = dict[str, tuple[float, float]]

OWN = st.dictionaries(st.sampled_from([*NAMES, "_D"]), VALUES)
FROZEN = st.lists(
    st.dictionaries(st.sampled_from([*NAMES, "_D"]), VALUES).map(lambda one: tuple(one.items())), max_size=3
).map(tuple)
HOSTS = st.lists(st.tuples(OWN, FROZEN), min_size=1, max_size=5).map(
    lambda found: [(f"h{number}", own, frozen) for number, (own, frozen) in enumerate(found)]
)
SYSTEM = st.dictionaries(st.sampled_from(NAMES), st.tuples(VALUES, WEIGHTS))
CUSTOMER = st.dictionaries(st.sampled_from([*NAMES, "_D"]), st.tuples(VALUES, WEIGHTS))


def placed(hosts: Hosts, system: VmKeys, customer: VmKeys) -> Decision:
    keys: list[PlacementKey] = [key(name, *pair) for name, pair in system.items()]
    keys += [key(name, *pair, key_class="customer") for name, pair in customer.items()]
    states: list[HostState] = [host_state(host, own, frozen) for host, own, frozen in hosts]
    return decide(compile_keys(keys), 1024, states)


def decimal_score(wanted: VmKeys, there: list[tuple[str, float]]) -> Decimal:
    """Sections 6 and 7: over every instance on the host, the weight times the nearness."""
    score = Decimal(0)
    for name, value in there:
        if name in wanted:
            own, weight = (Decimal(str(number)) for number in wanted[name])
            score += weight * max(Decimal(0), 1 - abs(own - Decimal(str(value))))
    return score


def scores(hosts: Hosts, system: VmKeys, customer: VmKeys) -> dict[str, tuple[Decimal, Decimal]]:
    found = {}
    for host, own, frozen in hosts:
        operators = [pair for pair in own.items() if not pair[0].startswith("_")]
        theirs = [pair for one in frozen for pair in one if not pair[0].startswith("_")]
        theirs += [pair for pair in own.items() if pair[0].startswith("_")]
        found[host] = decimal_score(system, operators), decimal_score(customer, theirs)
    return found


def chosen(hosts: Hosts, system: VmKeys, customer: VmKeys) -> set[str]:
    """Lower the threshold until somebody exceeds it, then let the customer choose."""
    found = scores(hosts, system, customer)
    for threshold in range(80, -11, -10):
        band = [host for host in found if found[host][0] > threshold]
        if band:
            best = max(found[host][1] for host in band)
            return {host for host in band if found[host][1] == best}
    return set()


@given(HOSTS, SYSTEM, CUSTOMER)
def test_choice_is_the_specifications(hosts: Hosts, system: VmKeys, customer: VmKeys) -> None:
    decision = placed(hosts, system, customer)
    assert set(decision.choice) == chosen(hosts, system, customer)
    assert decision.failed == (None if decision.choice else "threshold")


@given(HOSTS, SYSTEM, CUSTOMER)
def test_scores_are_exact_and_their_matches_add_up(hosts: Hosts, system: VmKeys, customer: VmKeys) -> None:
    found = scores(hosts, system, customer)
    for one in placed(hosts, system, customer).hosts:
        assert one.system is not None
        assert one.system.total == sum(match.points for match in one.system.matches)
        assert one.system.total.as_integer_ratio() == found[one.host][0].as_integer_ratio()
        if one.customer is not None:
            assert one.customer.total == sum(match.points for match in one.customer.matches)
            assert one.customer.total.as_integer_ratio() == found[one.host][1].as_integer_ratio()


@given(HOSTS, SYSTEM, CUSTOMER, st.randoms(use_true_random=False))
def test_order_of_hosts_changes_nothing(
    hosts: Hosts, system: VmKeys, customer: VmKeys, random: Random
) -> None:
    shuffled = list(hosts)
    random.shuffle(shuffled)
    before, after = placed(hosts, system, customer), placed(shuffled, system, customer)
    assert (set(before.choice), before.round, before.failed) == (set(after.choice), after.round, after.failed)
    assert {one.host: one for one in before.hosts} == {one.host: one for one in after.hosts}


def test_three_tenths_of_100_is_not_above_30() -> None:
    decision = placed([("h1", {"A": 0.7}, ())], {"A": (0.0, 100.0)}, {})
    assert decision.round == 7
    (one,) = decision.hosts
    assert one.system is not None
    (match,) = one.system.matches
    assert (match.proximity, match.points) == (Fraction(3, 10), 30)


def test_local_storage_leaves_the_host_of_the_disk_if_it_is_up() -> None:
    keys = compile_keys([key("A")])
    hosts = [host_state("h1", {"A": 1.0}), host_state("h2", {"A": 0.0})]
    assert decide_local(keys, hosts, "h2").choice == ("h2",)
    down = HostState("h2", capacity(up=False), hosts[1].keys)
    assert decide_local(keys, [hosts[0], down], "h2").failed == "constraint"
