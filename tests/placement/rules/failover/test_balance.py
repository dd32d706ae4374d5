"""The balance makes no move after which a failure is not survived that was survived before."""

from random import Random

import pytest
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.elements.verdict import BalanceMove, BalanceRequest
from ovirt_placement.rules.failover import balance
from ovirt_placement.rules.failover.balance import balance_vms
from tests.builders import APART, SOFT_APART, TOGETHER, Part, cluster, group, host, needed_mb, snapshot, vm
from tests.examples import seeds
from tests.placement.rules.failover.restarting import lost_sets, with_less

RESERVING = cluster(ha_reservation=True)


def moved(state: Snapshot, name: str, target: str) -> Snapshot:
    one = state.vm_by_id[name]
    there = with_less(with_less(state, one, one.host or "", -1), one, target)
    vms = (replace(other, host=target) if other is one else other for other in state.vms)
    return replace(there, vms=tuple(vms))


def move_of(state: Snapshot, **parameters: str) -> BalanceMove | None:
    return balance_vms(state, BalanceRequest(tuple(one.id for one in state.hosts), parameters))


def worse(state: Snapshot, move: BalanceMove) -> list[tuple[str, tuple[str, ...]]]:
    """Targets of a move, with what is survived before and not after; a lost set is lost with more hosts."""
    hosts, most = [one.id for one in state.hosts], state.clusters[0].ha_failures
    before = lost_sets(state, hosts, most)
    return [
        (target, lost)
        for target in move.hosts
        for lost in lost_sets(moved(state, move.vm, target), hosts, most)
        if not any(set(one) <= set(lost) for one in before)
    ]


def drawn(chance: Random, count: int, sizes: tuple[int, ...], most_there: int) -> Snapshot:
    """Hosts with little room, the first with the most VMs, and a few groups."""
    names = [f"h{number:02}" for number in range(count)]
    vms = [
        vm(
            f"{name}v{number}",
            name,
            memory_mb=chance.choice(sizes),
            vcpus=chance.choice([1, 2, 4]),
            ha=chance.random() < 0.7,
            usage_cpu_percent=chance.choice([1, 20]),
            pinned_hosts=tuple(chance.sample(names, 1)) if chance.random() < 0.05 else (),
        )
        for name in names
        for number in range(chance.randint(0, most_there) if name != "h00" else most_there + 1)
    ]
    rooms = chance.choice([(100, 700, 1300), (1300, 2500, 4700), (2500, 4700)])
    hosts = []
    for name in names:
        used, free = sum(needed_mb(one) for one in vms if one.host == name), chance.choice(rooms)
        hosts.append(
            host(name, memory_mb=used + free, free_mb=free, cores=chance.choice([4, 16]), cpu_percent=20)
        )
    groups = [
        group(f"g{number}", chance.choice([APART, TOGETHER, SOFT_APART]), " ".join(chance.sample(ids, 3)))
        for ids in [[one.id for one in vms]]
        for number in range(chance.randint(0, 2))
        if len(ids) >= 3
    ]
    failures = chance.choice([1, 1, 2]) if count < 6 else 1
    return snapshot(cluster(ha_reservation=True, ha_failures=failures), *hosts, *vms, *groups)


@pytest.mark.parametrize("seed", seeds(40))
def test_no_failure_is_made_worse(seed: int) -> None:
    chance = Random(10 + seed)  # some of the first would be harmed if nothing were asked
    few = drawn(chance, chance.randint(3, 5), (512, 1024, 2048, 4096), 3)
    many = drawn(chance, chance.randint(14, 20), (256, 512, 1024), 1)
    for state in (few, many):
        move = move_of(state)
        assert move is None or worse(state, move) == []


#: The one that uses less than its share is h2, and has room for one VM more.
CROWD = [vm(name, "h1", ha=True, needs_mb=2000) for name in "ab"]
H1, H2, H3 = host("h1", free_mb=100), host("h2", free_mb=2500), host("h3", free_mb=100)


@pytest.mark.parametrize(
    ("parts", "move"),
    [
        pytest.param(
            (H1, H2, replace(H3, free_mb=2500), *CROWD, vm("c", "h3", ha=True, needs_mb=2400)),
            None,
            id="what fails with h3 has no host but h2",
        ),
        pytest.param(
            (H1, H2, replace(H3, free_mb=2500), *CROWD, vm("c", "h3", needs_mb=2400)),
            BalanceMove("a", ("h2", "h3")),
            id="nothing that restarts needs the room",
        ),
        pytest.param(
            (
                replace(H1, free_mb=400),
                replace(H2, free_mb=4500),
                *CROWD,
                vm("c", "h2", ha=True, needs_mb=300),
            ),
            BalanceMove("a", ("h2",)),
            id="once it has left it may come back",
        ),
    ],
)
def test_each_move(parts: tuple[Part, ...], move: BalanceMove | None) -> None:
    assert move_of(snapshot(RESERVING, *parts), ha_balance_over_utilization="100") == move


def test_without_a_reservation_no_failure_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "_Failures", None)
    hosts = host("h1", cpu_percent=75, cores=10), host("h2")
    state = snapshot(cluster(), *hosts, vm("a", "h1", ha=True, usage_cpu_percent=1))
    assert move_of(state) == BalanceMove("a", ("h2",))


@pytest.mark.parametrize(("count", "moves"), [(20, True), (3, False)])
def test_where_hosts_have_room_to_spare_no_failure_is_judged(
    count: int, moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not known within the steps of a call is not done."""
    monkeypatch.setattr(balance, "_STEPS", 0)
    hosts = (host(f"h{number}", free_mb=2500) for number in range(count))
    assert (move_of(snapshot(RESERVING, *hosts, *CROWD)) is not None) == moves
