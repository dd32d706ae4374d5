"""A decision counts from the moment it is made, until the engine shows what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.inventory.expected.overlay import ExpectedOverlay
from ovirt_placement.inventory.expected.ranks import packed
from ovirt_placement.inventory.expected.traces import Outcomes, Trace, Traces
from ovirt_placement.model import Snapshot
from tests.builders import TOGETHER, cluster, group, host, pending, snapshot, vm

HOSTS = ("h1", "h2", "h3")
#: When the decisions of these tests are made, and how long they count at most, in seconds.
DECIDED = 100.0
LONGEST = 30.0
BASE = snapshot(*map(host, HOSTS), vm("a"), vm("b"), vm("r", "h1"))


class Machine:
    """Units that leave traces, and what another process of the machine makes of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.overlay = ExpectedOverlay(Traces(folder), LONGEST)

    def ranks(
        self, name: str, *ranks: int, unit: str = "SoftAffinityWeight", at: float = DECIDED, factor: int = 10
    ) -> None:
        trace = Trace(unit, at, BASE.vm_by_id[name].host, HOSTS, packed(ranks), factor)
        Traces(self.folder).leave(name, trace)

    def leaves(self, name: str, hosts: Sequence[str], unit: str = "AffinityFilter") -> None:
        Traces(self.folder).leave(name, Trace(unit, DECIDED, None, tuple(hosts), b"", 0))

    def expected(
        self,
        base: Snapshot = BASE,
        as_of: float = DECIDED - 1,
        now: float = DECIDED + 1,
        asked: str | None = None,
    ) -> dict[str, str]:
        return {one.vm: one.host for one in self.overlay.over(base, as_of, now, asked).pending}

    def outcomes(self) -> Outcomes:
        return Traces(self.folder).outcomes()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "expected")


def shown(name: str, at: str | None, **fields: object) -> Snapshot:
    """The state in which the engine shows a VM on a host."""
    changed = {"host": at, "status": "wait_for_launch" if at else "down", **fields}
    return replace(BASE, vms=tuple(replace(one, **changed) if one.id == name else one for one in BASE.vms))


def test_the_best_host_by_ranks_and_factors_is_expected(machine: Machine) -> None:
    machine.ranks("a", 2, 1, 0, factor=1)
    machine.ranks("a", 0, 1, 1, unit="HaReservationWeight", factor=10)
    assert machine.expected() == {"a": "h1"}


def test_what_units_find_of_a_vm_counts_for_others_and_not_yet_for_itself(machine: Machine) -> None:
    assert machine.expected() == {}
    machine.ranks("a", 2, 1, 0)
    assert machine.expected(asked="a") == {}
    machine.ranks("a", 0, 1, 2, unit="HaReservationWeight", factor=100)
    assert machine.expected(asked="a") == {}
    assert machine.expected(asked="b") == {"a": "h1"}
    machine.ranks("b", 0, 1, 2)
    assert machine.expected(asked="a") == {"a": "h1", "b": "h1"}


def test_on_a_new_state_all_is_looked_at_again(machine: Machine) -> None:
    machine.ranks("a", 0, 1, 2)
    assert machine.expected(asked="b") == {"a": "h1"}
    assert machine.expected(shown("a", "h2"), asked="a") == {}


def test_a_call_that_comes_later_is_another_decision(machine: Machine) -> None:
    machine.ranks("a", 1, 1, 0, factor=100)
    machine.ranks("a", 1, 0, 1, unit="HaReservationWeight", at=DECIDED + 5, factor=1)
    assert machine.expected(now=DECIDED + 6) == {"a": "h2"}


def test_the_engines_own_weights_count_with_those_that_are_on_their_way(machine: Machine) -> None:
    even = replace(BASE, clusters=(cluster(policy={"even_memory_weight": 1}),))
    for name in ("a", "b"):
        machine.ranks(name, 0, 0, 1)
    assert machine.expected(even) == {"a": "h1", "b": "h2"}


def test_the_one_host_that_the_filters_leave_is_expected(machine: Machine) -> None:
    machine.leaves("a", ["h1", "h2"], unit="AffinityFilter")
    assert machine.expected() == {}
    machine.leaves("a", ["h2", "h3"], unit="HostAffinityFilter")
    assert machine.expected() == {"a": "h2"}


@pytest.mark.parametrize("shown_on", [*HOSTS, None])
def test_only_what_contradicts_an_expectation_ends_it(machine: Machine, shown_on: str | None) -> None:
    machine.ranks("a", 0, 1, 2)
    assert machine.expected() == {"a": "h1"}
    left = Traces(machine.folder).latest("a")
    machine.overlay.correct(BASE.vm_by_id["a"], shown_on, DECIDED + 2)
    assert machine.outcomes().wrong == (shown_on != "h1")
    assert machine.expected(now=DECIDED + 3) == ({"a": shown_on} if shown_on else {})
    assert (Traces(machine.folder).latest("a") == left) == (shown_on == "h1")


def test_a_vm_whose_one_host_left_is_its_present_one_stays(machine: Machine) -> None:
    Traces(machine.folder).leave("r", Trace("AffinityFilter", DECIDED, "h1", ("h1",), b"", 0))
    assert machine.expected() == {}


def test_nothing_is_expected_of_a_vm_that_a_filter_refuses(machine: Machine) -> None:
    machine.leaves("a", ["h1"], unit="AffinityFilter")
    machine.leaves("a", [], unit="PlacementKeyFilter")
    assert machine.expected() == {}


@pytest.mark.parametrize(
    ("real", "outcome"), [("h1", Outcomes(1, 0, 0)), ("h2", Outcomes(0, 1, 0))], ids=["right", "wrong"]
)
def test_it_ends_when_the_engine_shows_the_vm(machine: Machine, real: str, outcome: Outcomes) -> None:
    machine.ranks("a", 0, 1, 1)
    assert machine.expected() == {"a": "h1"}
    assert machine.expected(shown("a", real)) == {}
    assert machine.expected() == {}
    assert machine.outcomes() == outcome


def test_it_ends_when_a_migration_shows_its_target(machine: Machine) -> None:
    machine.ranks("r", 2, 0, 1)
    assert machine.expected() == {"r": "h2"}
    assert machine.expected(shown("r", "h1", status="migrating", migrating_to="h2")) == {}
    assert machine.outcomes() == Outcomes(1, 0, 0)


def test_it_ends_when_the_vm_still_rests_long_after(machine: Machine) -> None:
    machine.ranks("a", 0, 1, 1)
    assert machine.expected(as_of=DECIDED + 4, now=DECIDED + 4.5) == {"a": "h1"}
    assert machine.expected(as_of=DECIDED + 6, now=DECIDED + 6.5) == {}
    assert machine.outcomes() == Outcomes(0, 0, 0)


def test_it_ends_at_last_whatever_the_engine_shows(machine: Machine) -> None:
    machine.ranks("a", 0, 1, 1)
    state = shown("a", None, status="unknown")
    assert machine.expected(state, as_of=DECIDED + 29, now=DECIDED + 29.5) == {"a": "h1"}
    assert machine.expected(state, as_of=DECIDED + 29, now=DECIDED + 30.5) == {}
    assert list(machine.folder.iterdir()) == []


def test_what_the_engine_shows_already_is_expected_no_more_and_judged_by_nobody(machine: Machine) -> None:
    machine.ranks("a", 0, 1, 1)
    assert machine.expected(shown("a", "h2")) == {}
    assert machine.outcomes() == Outcomes(0, 0, 0)


def test_an_open_intent_says_more_than_an_expectation(machine: Machine) -> None:
    machine.ranks("a", 0, 1, 1)
    intent = replace(BASE, pending=(pending("a", "h3"),))
    assert machine.expected(intent) == {"a": "h3"}


def test_a_record_of_which_half_is_there_is_none(machine: Machine) -> None:
    machine.ranks("a", 0, 1, 1)
    file = machine.folder / "journal"
    whole = file.read_bytes()
    file.write_bytes(whole + whole[: len(whole) // 2])
    assert machine.expected() == {"a": "h1"}
    file.write_bytes(whole[: len(whole) // 2])
    assert Machine(machine.folder).expected() == {}


@pytest.mark.parametrize("name", ["../a", "", ".a", "a/b", "a\0b"])
def test_no_id_of_a_vm_leads_out_of_the_folder(machine: Machine, name: str) -> None:
    machine.ranks("a", 0, 1, 1)
    Traces(machine.folder).leave(
        name, Trace("SoftAffinityWeight", DECIDED, None, HOSTS, packed([0, 0, 0]), 1)
    )
    assert [path.name for path in machine.folder.rglob("*")] == ["journal"]
    assert [path.name for path in machine.folder.parent.iterdir()] == ["expected"]


def test_the_same_question_has_the_same_object_for_an_answer(machine: Machine) -> None:
    assert machine.overlay.over(BASE, 0, DECIDED) is BASE
    machine.ranks("a", 0, 1, 1)
    first = machine.overlay.over(BASE, DECIDED - 1, DECIDED)
    assert machine.overlay.over(BASE, DECIDED - 0.5, DECIDED + 1) is first


def test_later_decisions_about_a_vm_count_and_take_no_more_room(machine: Machine) -> None:
    for at in range(5000):
        machine.ranks("a", 1, 0, 1, at=DECIDED - 10_000 + 2 * at)
    machine.ranks("a", 0, 1, 1)
    assert machine.expected() == {"a": "h1"}
    machine.ranks("a", 1, 0, 1, at=DECIDED + 2)
    assert machine.expected(now=DECIDED + 3) == {"a": "h2"}
    assert (machine.folder / "journal").stat().st_size < 300_000


def test_an_event_reports_the_host_before_the_vm_shows_it(machine: Machine) -> None:
    machine.ranks("a", 2, 1, 0)
    assert machine.expected() == {"a": "h3"}
    machine.overlay.heard("a", "h1", before=DECIDED + 0.5, now=DECIDED + 1)
    assert machine.expected() == {"a": "h1"}
    assert machine.outcomes() == Outcomes(0, 1, 0)


def test_an_event_ends_what_was_expected_of_a_start_that_failed(machine: Machine) -> None:
    machine.ranks("a", 2, 1, 0)
    assert machine.expected() == {"a": "h3"}
    machine.overlay.heard("a", None, before=DECIDED + 0.5, now=DECIDED + 1)
    assert machine.expected() == {}


def test_an_event_from_before_a_decision_says_nothing_about_it(machine: Machine) -> None:
    machine.ranks("a", 2, 1, 0)
    machine.overlay.heard("a", None, before=DECIDED - 0.5, now=DECIDED + 1)
    assert machine.expected() == {"a": "h3"}


def test_a_vm_that_ends_apart_from_its_hard_group_is_counted(machine: Machine) -> None:
    groups = (group("ab", TOGETHER, "a b"), group("br", TOGETHER, "b r"))
    machine.ranks("a", 0, 1, 2)
    machine.expected(replace(BASE, affinity_groups=groups))
    machine.expected(replace(shown("a", "h3"), affinity_groups=groups))
    assert machine.outcomes() == Outcomes(0, 0, 1)


def test_what_is_expected_is_marked_as_such(machine: Machine) -> None:
    machine.leaves("a", ["h2"])
    laid = machine.overlay.over(BASE, DECIDED - 1, DECIDED + 1)
    assert laid.unconfirmed == {"a"}
    assert laid.confirmed.pending == ()
