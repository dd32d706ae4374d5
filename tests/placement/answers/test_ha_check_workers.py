"""Whichever worker answers, and however many are lost meanwhile: the answer is that of one process."""

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster
from joblib.externals.loky import get_reusable_executor

from ovirt_placement.answers.status import ha_check as ha_check_workers
from ovirt_placement.answers.status.ha_check import examine_lump, spreading
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.check import HaCheck, check
from ovirt_placement.rules.failover.measures import Examined
from ovirt_service.errors import UserError
from ovirt_simulator.generate import Sizes, generate

#: They start processes of their own.
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("ha-check-workers")]


@pytest.fixture(scope="module")
def state() -> Snapshot:
    return generate(Sizes(hosts=24, vms=300, groups=40, ha=0.5), seed=3)


@pytest.fixture(scope="module")
def alone(state: Snapshot) -> HaCheck:
    found = check(state, state.clusters[0].id, 2)
    assert found.survived > 100
    return found


def two_workers() -> LocalCluster:
    return LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    )


@pytest.fixture(scope="module")
def dask() -> Iterator[LocalCluster]:
    with two_workers() as cluster:
        yield cluster


def asked(
    state: Snapshot, processes: int | None = None, scheduler: str | None = None, **more: Any
) -> HaCheck:
    with spreading(processes, scheduler) as spread:
        return check(state, state.clusters[0].id, 2, spread=spread, **more)


def test_one_process_needs_nobody() -> None:
    with spreading(1, None) as spread:
        assert spread is None


def test_processes_and_workers_answer_as_one_process_and_end_at_the_same_failure(
    state: Snapshot, alone: HaCheck, dask: LocalCluster
) -> None:
    few = check(state, state.clusters[0].id, 2, 300)
    assert few.unjudged > 0
    for processes, scheduler in ((2, None), (None, dask.scheduler_address)):
        assert asked(state, processes, scheduler) == alone
        assert asked(state, processes, scheduler, steps=300) == few


def lethal(encoded: bytes, tasks: Sequence[tuple[str, ...]]) -> list[Examined]:
    """The first worker that has pairs to examine dies of it."""
    mark = Path(os.environ["HA_CHECK_TEST_MARK"])
    if len(tasks[0]) == 2:
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return examine_lump(encoded, tasks)


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ha_check_workers, "examine_lump", lethal)
    monkeypatch.setenv("HA_CHECK_TEST_MARK", str(tmp_path / "dead"))
    get_reusable_executor().shutdown(wait=True)  # processes of an earlier test know nothing of the mark
    return tmp_path / "dead"


def test_a_process_that_is_lost_loses_nothing(state: Snapshot, alone: HaCheck, mark: Path) -> None:
    assert asked(state, processes=2) == alone
    assert mark.exists()


def test_a_worker_that_is_lost_loses_nothing(state: Snapshot, alone: HaCheck, mark: Path) -> None:
    with two_workers() as dask:
        assert asked(state, scheduler=dask.scheduler_address) == alone
    assert mark.exists()


def deadly(encoded: bytes, tasks: Sequence[tuple[str, ...]]) -> list[Examined]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def test_processes_that_die_again_and_again_are_reported(
    state: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ha_check_workers, "examine_lump", deadly)
    with pytest.raises(UserError, match="again and again"):
        asked(state, processes=2)
