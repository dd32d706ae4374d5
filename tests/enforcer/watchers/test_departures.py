"""What VMs were remembered by is forgotten when the engine has them no more for sure, and never before."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_enforcer.watchers.key_recorder import MISSING_SECONDS, READINGS
from ovirt_placement.store.keys import Run
from tests import builders
from tests.builders import snapshot
from tests.enforcer.watchers.keeper_bench import KEYS, SAN1, Bench, key, opened_bench, vm
from tests.placement.databases import database
from tests.stored import put_keys

OTHER = builders.vm("other")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with opened_bench(tmp_path) as opened:
        opened.store.begin_runs([Run("v", 100.0, (), (SAN1,))])
        yield opened


def let_pass(seconds: float, folder: Path) -> None:
    """Let time pass by the store's clock."""
    with database(f"sqlite:///{folder}/store.db") as connection:
        connection.exec_driver_sql(f"UPDATE missing_vms SET since = since - {seconds}")


def test_a_vm_that_was_missing_for_long_enough_is_forgotten(
    bench: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    set_on_it = key("GEN", 1, 50, level="server", resource="v")
    put_keys(bench.store, [set_on_it])
    for _ in range(READINGS):
        bench.sees(OTHER)
    let_pass(MISSING_SECONDS - 60, tmp_path)
    bench.sees(OTHER)
    assert bench.store.remembered_vms() == {"v"}
    let_pass(61, tmp_path)
    bench.sees(OTHER)
    assert bench.store.remembered_vms() == set()
    assert bench.store.mark_missing([]) == {}
    assert set(bench.store.records().keys) == {*KEYS, set_on_it}  # what people set is theirs to remove
    assert caplog.text.count("forgot VMs that the engine has had no more for a week: v") == 1


def test_a_vm_that_comes_back_is_counted_again(bench: Bench, tmp_path: Path) -> None:
    bench.sees(OTHER)
    let_pass(MISSING_SECONDS, tmp_path)
    bench.sees(vm())
    for _ in range(READINGS + 1):
        bench.sees(OTHER)
    assert bench.copies == (SAN1,)


def test_an_engine_that_shows_no_vm_at_all_says_nothing(bench: Bench, tmp_path: Path) -> None:
    bench.sees(OTHER)
    let_pass(MISSING_SECONDS, tmp_path)
    for _ in range(READINGS + 1):
        bench.sees()
    assert bench.copies == (SAN1,)


def test_several_readings_of_one_process_must_agree(bench: Bench, tmp_path: Path) -> None:
    for _ in range(READINGS + 1):
        bench.restart()
        bench.sees(OTHER)
        let_pass(MISSING_SECONDS, tmp_path)
    assert bench.copies == (SAN1,)


def test_only_whole_readings_count(bench: Bench, tmp_path: Path) -> None:
    bench.sees(OTHER)
    let_pass(MISSING_SECONDS, tmp_path)
    for _ in range(READINGS + 1):
        bench.keeper.observe_latest(lambda: snapshot(OTHER))
    assert bench.copies == (SAN1,)


def test_looking_on_does_not_disturb_who_follows_the_revision(bench: Bench) -> None:
    bench.sees(OTHER)
    revision = bench.store.revision()
    for _ in range(READINGS):
        bench.sees(OTHER)
    assert bench.store.revision() == revision
