"""What a change or a start would cost, asked before it is made."""

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.answers.placement import where
from ovirt_placement.answers.plans.what_if import WhatIfDocument, lines, measures, preview
from ovirt_placement.forecast import changed_groups, find_barred
from ovirt_placement.model import AffinityGroup, SchedulingPolicy, Snapshot, state_file
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.build_problem import Repair
from ovirt_placement.rules.doubts import Believed, believed
from ovirt_simulator.scheduler import filters
from tests.builders import APART, CLUSTER, SOFT_TOGETHER, TOGETHER, cluster, group, host, snapshot, vm
from tests.cases.conftest import STATES, Ask


def test_room_is_made_by_the_one_migration_that_does(ask: Ask) -> None:
    found = ask("ovirt-enforcer make-room db-2", "make-room")
    assert "VM db-2 can start on host node2 after 1 migration, no fewer will do:" in found.text
    assert "  1. db-1 from node2 to " in found.text


def test_cpus_that_a_vm_has_for_itself_are_no_others(ask: Ask) -> None:
    """14 of 16; the simulated engine counts as well."""
    why = "has 2 cores that are no VM's own, and VM x has more CPUs"
    assert f"h1    refused  {why}" in ask("ovirt-placement why x h1", "dedicated-cpus").text
    checked = ask("ovirt-placement ha-check", "dedicated-cpus")
    assert (checked.status, f"If h2 failed:\n  x: h1: {why}" in checked.text) == (1, True)
    state = state_file.load(STATES / "dedicated-cpus.json")
    assert set(filters.cpu(state, [state.vm_by_id["x"]], state.hosts)) == {"h1"}


def test_a_vm_that_is_down_and_could_start_nowhere_any_more_is_named() -> None:
    before = state_file.load(STATES / "preview.json")
    ids = {one.name: one for one in before.vms}
    vms = " ".join(ids[name].id for name in ("db-1", "db-2", "db-3"))
    apart = group("", APART, vms, name="db-apart", cluster=ids["db-1"].cluster)
    found = _previewed(before, apart)
    assert "  db-2, which is down, could start on no host any more" in list(lines(found))
    assert measures(found)["unplaced"] == 1


def _previewed(state: Snapshot, group: AffinityGroup) -> WhatIfDocument:
    change = changed_groups(state, (), [group])
    return preview(state, change, repair=frozenset({Repair.HARD}), deadline=NEVER)


def test_what_there_was_no_time_for_is_not_called_startable() -> None:
    before = snapshot(host("h1"), vm("a", "h1"), vm("b"), vm("c"))
    after = snapshot(host("h1"), vm("a", "h1"), vm("b"), vm("c"), group("g", APART, "a b c"))
    assert find_barred(before, after, CLUSTER, NEVER)[0] == ("b", "c")
    assert find_barred(before, after, CLUSTER, Deadline(lambda: 0.0)) == ((), 2)


def test_a_vm_that_could_not_start_before_either_is_no_news() -> None:
    parts = host("h1", free_mb=0), host("h2"), vm("a", "h1"), vm("big", needs_mb=1 << 20), vm("b")
    before = snapshot(*parts)
    after = snapshot(*parts, group("g", TOGETHER, "a b"), group("h", APART, "a big"))
    assert find_barred(before, after, CLUSTER, NEVER)[0] == ("b",)


def test_where_ranks_by_no_unit_that_the_policy_is_known_to_lack() -> None:
    vms = vm("a", "h1"), vm("n")
    together = group("g", SOFT_TOGETHER, "a n")
    known = cluster(scheduling_policy=SchedulingPolicy(weights={"HaReservationWeight": 1}))
    for of, ranks in ((known, {"HaReservationWeight"}), (cluster(), {"SoftAffinityWeight"})):
        state = snapshot(of, host("h1"), host("h2"), *vms, together)
        found = where(state, state.vm_by_id["n"]).hosts
        assert [{one.unit for one in each.weights} & {*ranks, "SoftAffinityWeight"} for each in found] == [
            ranks,
            ranks,
        ]


def test_a_preview_says_what_the_engine_has_not_counted_yet() -> None:
    parts = host("h1", memory_uncounted=True), host("h2"), vm("a", "h1"), vm("b", "h1")
    apart = group("g", APART, "a b")
    state = snapshot(*parts)
    found = _previewed(state, apart)
    (line,) = (one for one in lines(found) if "foreseen" in one)
    assert line.startswith(
        "  not known yet, and no migrations are foreseen: the engine has not counted the memory"
    )
    assert not found.clusters[0].moves
    assert not [one for one in lines(found) if "violates no rule" in one]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0, 900, 1000, 4000])), max_size=6))
def test_no_more_is_believed_of_a_host_for_what_was_believed_before(readings: list[tuple[str, int]]) -> None:
    known: dict[str, Believed] = {}
    for now, (name, free_mb) in enumerate(readings):
        state = snapshot(host("h1", memory_mb=4096, free_mb=free_mb), vm(name, "h1", needs_mb=3072))
        (found,), (alone,) = believed(state, known, now).hosts, believed(state).hosts
        assert found.free_mb <= alone.free_mb
        assert alone.memory_uncounted or found == alone
