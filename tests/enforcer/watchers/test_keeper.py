"""The keeper records each run of a VM once, whatever it missed and wherever it was killed."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.model import FrozenKeys, Snapshot
from ovirt_placement.store.keys import Run
from ovirt_service.errors import UserError
from tests import builders
from tests.builders import host, snapshot
from tests.enforcer.watchers.keeper_bench import SAN1, SAN2, SET, Bench, on_cluster, opened_bench, vm
from tests.stored import put_keys


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with opened_bench(tmp_path) as opened:
        yield opened


def test_a_start_freezes_the_compiled_customer_keys_and_copies_sticky_ones(bench: Bench) -> None:
    bench.sees(vm())
    assert (bench.frozen, bench.copies) == ({}, ())
    bench.sees(vm("h1"))
    assert (bench.frozen, bench.copies) == ({"v": SET}, (SAN1,))


def test_a_migration_leaves_both_as_they_are(bench: Bench) -> None:
    bench.sees(vm("h1"))
    put_keys(bench.store, [on_cluster("Group2")])
    bench.sees(vm("h1", status="migrating", migrating_to="h2"))
    bench.sees(vm("h2"))
    assert (bench.frozen, bench.copies) == ({"v": SET}, (SAN1,))


def test_an_edit_counts_from_the_next_start_on(bench: Bench) -> None:
    bench.sees(vm("h1"))
    edited = {"placement_keys": "Repel2:1:-100"}
    bench.sees(replace(vm("h1"), custom_properties=edited))
    assert bench.frozen == {"v": SET}
    bench.sees(vm())
    bench.sees(replace(vm("h2"), custom_properties=edited))
    assert bench.frozen == {"v": (("Group1", 1.0), ("Repel2", 1.0))}
    assert bench.copies == (SAN2,)  # in place of the copy of the same name


def test_what_it_missed_is_made_up_for(bench: Bench) -> None:
    bench.store.begin_runs([Run(name, 100.0, (("Old", 1.0),)) for name in ("v", "stopped", "same")])
    same = builders.vm("same", "h1", running_since=101.0)
    bench.sees(vm("h1", running_since=500.0), builders.vm("stopped"), same)
    assert bench.frozen == {"v": SET, "same": (("Old", 1.0),)}


def test_a_vm_that_is_not_shown_for_a_moment_keeps_its_record(bench: Bench) -> None:
    bench.store.begin_runs([Run("v", 100.0, (("Old", 1.0),))])
    bench.sees(builders.vm("another"))
    bench.sees()
    bench.sees(vm("h1", running_since=100.0))
    assert bench.frozen == {"v": (("Old", 1.0),)}


def test_looking_again_and_starting_again_change_nothing(bench: Bench) -> None:
    bench.sees(vm("h1"))
    revision = bench.store.revision()
    bench.sees(vm("h1"))
    bench.restart()
    bench.sees(vm("h1"))
    assert bench.store.revision() == revision


@pytest.mark.parametrize("method", ["end_runs", "begin_runs", "records"])
def test_one_clusters_failure_never_ends_anothers(
    bench: Bench, method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clusters = (builders.cluster("one"), builders.cluster("two"))
    hosts = (host("a", cluster="one"), host("b", cluster="two"))
    vms = (builders.vm("va", "a", cluster="one"), builders.vm("vb", "b", cluster="two"))
    state = snapshot(*clusters, *hosts, *vms)
    work = getattr(bench.store, method)
    failures = [1]

    def fails_once(*arguments: Any) -> Any:
        if failures:
            failures.pop()
            raise UserError("the store is locked")
        return work(*arguments)

    monkeypatch.setattr(bench.store, method, fails_once)
    bench.keeper.observe(state)
    assert set(bench.frozen) == ({"vb"} if method == "begin_runs" else set())
    assert "the store is locked" in caplog.text
    assert not bench.keeper.needs_retry
    bench.now = 1.0
    assert bench.keeper.needs_retry
    bench.keeper.observe_latest(lambda: state)
    assert set(bench.frozen) == {"va", "vb"}
    assert not bench.keeper.needs_retry


def fails(*_: Any) -> None:
    raise UserError("the store is locked")


def test_what_failed_and_is_not_to_be_done_any_more_is_not_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.store, "begin_runs", fails)
    bench.sees(vm("h1"))
    bench.now = 1.0
    assert bench.keeper.needs_retry
    bench.sees(vm())
    assert not bench.keeper.needs_retry


def test_a_failure_that_lasts_is_reported_once_and_so_is_its_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with monkeypatch.context() as locked:
        locked.setattr(bench.store, "begin_runs", fails)
        for bench.now in (0.0, 1.0, 3.0):
            bench.sees(vm("h1"))
    bench.now = 7.0
    bench.sees(vm("h1"))
    name = f"placement keys of cluster {builders.CLUSTER}"
    reported = [record.getMessage() for record in caplog.records]
    assert reported == [f"{name}: the store is locked", f"{name}: works again"]


def test_a_property_that_cannot_be_read_is_reported_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    reported = "VM v: custom property placement_keys is ignored: 'Repel1=1'"
    violated = builders.vm("v", "h1", custom_properties={"placement_keys": "Repel1=1"})
    for _ in range(3):
        bench.sees(violated)
    assert caplog.text.count(reported) == 1
    assert bench.frozen == {"v": (("Group1", 1.0),)}
    bench.sees(vm("h1"))
    bench.sees(violated)  # repaired, and violated again
    assert caplog.text.count(reported) == 2


def test_of_a_property_with_a_bad_key_the_others_count(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    text = f"_:1:5,A:1:5,Huge:{'9' * 41}:5,Off:1:0"
    for _ in range(2):
        bench.sees(builders.vm("v", "h1", custom_properties={"placement_keys": text}))
    assert [record.getMessage() for record in caplog.records] == [
        "VM v: custom property placement_keys: key _ is ignored: it has no name",
        "VM v: custom property placement_keys: key Huge is ignored: its value is no number",
    ]
    assert bench.frozen == {"v": (("Group1", 1.0), ("A", 1.0))}


def test_what_cannot_be_read_is_looked_at_later(bench: Bench) -> None:
    readings = []

    def away() -> Snapshot:
        readings.append(bench.now)
        raise UserError("the engine is away")

    for bench.now in (0.0, 0.5, 1.0, 2.0, 3.0):
        bench.keeper.observe_latest(away)
    assert readings == [0.0, 1.0, 3.0]
    bench.now = 61.0
    bench.keeper.observe_latest(lambda: snapshot(host("h1"), vm("h1")))
    assert bench.frozen == {"v": SET}
    assert bench.store.records().frozen_keys == (FrozenKeys("v", SET),)


def test_what_keys_refer_to_is_waited_for_but_not_for_ever(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.detailed = False
    bench.sees(vm("h1"))
    bench.now = 599.0
    bench.sees(vm("h1"))
    assert bench.frozen == {}
    bench.detailed = True
    bench.sees(vm("h2"))
    assert bench.frozen == {"v": SET}
    assert bench.readings == 1  # where it started is asked: it may have moved meanwhile
    bench.detailed = False
    other = builders.vm("other", "h1")
    for bench.now in (600.0, 1199.0, 1200.0):
        assert "other" not in bench.frozen
        bench.sees(vm("h2"), other)
    assert bench.frozen.keys() == {"v", "other"}
    assert caplog.text.count("disks, NICs or owners are still unknown") == 1
