"""Settings of the enforcer that leads: what differs from those before is an action in the history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ovirt_placement.store.enforcer.leader import EnforcerSettingsStore, LeaseStore
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_placement.store.user_actions import UserActionStore
from tests.placement.databases import set_clock


class Stage:
    def __init__(self, url: str) -> None:
        self.leases = LeaseStore(url, engine="default", patience_seconds=30)
        self.epoch = self.leases.take_lease("one", 600.0)
        self.settings = EnforcerSettingsStore(
            url, engine="default", patience_seconds=30, epoch=lambda: self.epoch or 0
        )
        self._actions = UserActionStore(url, engine="default", patience_seconds=30)

    def record(self, **settings: Any) -> None:
        self.settings.record(self.epoch or 0, settings)

    def sentences(self) -> list[str]:
        return [
            action.sentence.replace(f" on {action.machine} ", " on MACHINE ", 1)
            for action in self._actions.actions(since_seconds=600)
        ]

    def close(self) -> None:
        for part in (self.leases, self.settings, self._actions):
            part.close()


@pytest.fixture
def stage(url: str) -> Iterator[Stage]:
    found = Stage(url)
    yield found
    found.close()


def test_the_first_settings_and_the_same_again_are_no_change(stage: Stage) -> None:
    assert stage.settings.of_leader() is None
    for _ in range(2):
        stage.record(mode="observe", repair=["hard"], cooldown_seconds=600.0)
    assert stage.sentences() == []
    assert stage.settings.of_leader() == {"mode": "observe", "repair": ["hard"], "cooldown_seconds": 600.0}
    stage.leases.release(1)
    assert stage.settings.of_leader() is None


def test_each_difference_is_named_with_what_it_was(stage: Stage) -> None:
    stage.record(mode="observe", repair=["hard"], planning_seconds=None, audit_log="/var/log/a")
    stage.record(mode="enforce", repair=["hard", "soft"], planning_seconds=5.0, audit_log="")
    (sentence,) = stage.sentences()
    assert sentence == (
        "ovirt-enforcer on MACHINE leads with changed settings: audit_log empty, before /var/log/a;"
        " mode enforce, before observe; planning_seconds 5.0, before not set;"
        ' repair ["hard","soft"], before ["hard"]'
    )


def test_of_long_lists_the_entries_in_which_they_differ_are_named(stage: Stage) -> None:
    many = [f"vm-{number}" for number in range(10_000)]
    stage.record(exclude_vms=[])
    stage.record(exclude_vms=many)
    stage.record(exclude_vms=["web", *many[3:]])
    stage.record(exclude_vms=[*many[3:], "web"])
    stage.record(exclude_vms=None)
    ten = ", ".join(many[:10])
    others = ", ".join(many[3:13])
    assert [sentence.partition(" exclude_vms ")[2] for sentence in stage.sentences()] == [
        f"10,000 entries (with {ten} and 9,990 more), before []",
        "9,998 entries (with web), before 10,000 entries (with vm-0, vm-1, vm-2)",
        "9,998 entries, before 9,998 entries",
        f"not set, before 9,998 entries (with {others} and 9,988 more)",
    ]


def test_entries_may_be_more_than_names(stage: Stage) -> None:
    windows = [{"start": f"0 {hour} * * *", "hours": 1.0, "clusters": ["red"]} for hour in range(24)]
    stage.record(windows=windows)
    stage.record(windows=windows[1:])
    assert [sentence.partition(" windows ")[2] for sentence in stage.sentences()] == [
        '23 entries, before 24 entries (with {"start":"0 0 * * *","hours":1.0,"clusters":["red"]})'
    ]


def test_a_clock_that_was_set_back_far_leaves_nobody_leading(stage: Stage, url: str) -> None:
    stage.record(mode="observe")
    set_clock(url, -60_000.0)
    assert (stage.settings.of_leader(), stage.leases.leader()) == (None, None)


def test_one_that_leads_no_more_records_nothing(stage: Stage) -> None:
    stage.record(mode="observe")
    stage.leases.release(1)
    assert stage.leases.take_lease("other", 600.0) == 2
    with pytest.raises(LeaseLost):
        stage.record(mode="enforce")
    assert (stage.settings.of_leader(), stage.sentences()) == (None, [])
    stage.epoch = 2
    stage.record(mode="observe")
    assert (stage.settings.of_leader(), stage.sentences()) == ({"mode": "observe"}, [])
