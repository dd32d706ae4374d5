"""Our balance and our enforcer do not move a VM to and fro."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.elements.verdict import BalanceMove
from ovirt_placement.rules.load import choose_move
from tests.builders import SOFT_APART, SOFT_TOGETHER, group, host, snapshot, vm
from tests.cases.asking import Ask

_HOSTS = ("h0", "h1", "h2")
_VMS = ("a", "b", "c", "d")


def test_a_busy_host_is_relieved_by_a_vm_that_breaks_no_soft_group(ask: Ask) -> None:
    found = ask("ovirt-enforcer simulate-policy --repair hard,soft", "balance-and-soft-group")
    assert "settles after 1 migration" in found.text
    assert "LOOP" not in found.text


def _violations(state: Snapshot, name: str, place: str) -> dict[str, int]:
    """Of each soft group of a VM how many pairs should not be as they are, with the VM there."""
    where = {one.id: place if one.id == name else one.host for one in state.vms}
    found = {}
    for one in state.affinity_groups:
        if name in one.vms:
            pairs = [where[peer] == place for peer in one.vms if peer != name]
            found[one.id] = sum(together is not one.vms_rule.positive for together in pairs)
            if one.hosts_rule.enabled:
                found[f"{one.id} hosts"] = (place in one.hosts) is not one.hosts_rule.positive
    return found


@given(
    homes=st.lists(st.sampled_from(_HOSTS), min_size=4, max_size=4),
    rules=st.lists(
        st.tuples(
            st.sampled_from([SOFT_APART, SOFT_TOGETHER]),
            st.sets(st.sampled_from(_VMS), min_size=2),
            st.sampled_from([SOFT_APART, SOFT_TOGETHER]),
            st.sets(st.sampled_from(_HOSTS), max_size=2),
        ),
        max_size=3,
    ),
    moves=st.lists(
        st.tuples(st.sampled_from(_VMS), st.sets(st.sampled_from(_HOSTS), min_size=1)), max_size=4
    ),
)
def test_a_move_that_breaks_no_soft_group_comes_first(
    homes: list[str],
    rules: list[tuple[object, set[str], object, set[str]]],
    moves: list[tuple[str, set[str]]],
) -> None:
    groups = [
        group(f"g{at}", of_vms, " ".join(sorted(vms)), hosts_rule=of_hosts, hosts=" ".join(sorted(hosts)))
        for at, (of_vms, vms, of_hosts, hosts) in enumerate(rules)
    ]
    state = snapshot(*map(host, _HOSTS), *map(vm, _VMS, homes), *groups)
    proposed = [BalanceMove(name, tuple(sorted(hosts))) for name, hosts in moves]

    def harmless(name: str, place: str) -> bool:
        before, after = _violations(state, name, homes[_VMS.index(name)]), _violations(state, name, place)
        return all(after[key] <= before[key] for key in after)

    possible = [(one.vm, place) for one in proposed for place in one.hosts if harmless(one.vm, place)]
    chosen = choose_move(state, proposed)
    if possible:
        assert chosen.vm == possible[0][0]
        assert {(chosen.vm, place) for place in chosen.hosts} <= set(possible)
    else:
        assert chosen == (proposed[0] if proposed else None)
