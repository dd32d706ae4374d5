"""Readers: silent ones, too many of them, and those who ask about VMs that do not exist hold up nobody."""

import fcntl
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from ovirt_placement.config import Config, InventorySettings
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.connection import SOCKET_NAME, NoService, address
from ovirt_placement.inventory.on_demand import Demands
from ovirt_placement.inventory.publication import (
    Decide,
    Decided,
    Moments,
    Publication,
    Refresh,
    State,
    ask,
    now,
)
from ovirt_placement.inventory.service.schedule import (
    MOST_AT_ONCE,
    ReconciliationScope,
    UnknownVms,
    next_reading,
    reconciliations,
)
from ovirt_placement.inventory.service.service import _Lane, _Service
from ovirt_placement.model import Vm
from ovirt_placement.model.snapshot import HOST_STATISTICS, VM_STATISTICS
from tests.builders import snapshot, vm
from tests.paths import RECORDING
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import COMMAND, ended, polls, readings, running


@pytest.fixture
def silent() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(stack: ExitStack, config: Config, number: int) -> None:
    for _ in range(number):
        reader = stack.enter_context(socket.socket(socket.AF_UNIX))
        with address(config.inventory.directory) as path:
            reader.setblocking(False)
            reader.connect_ex(path)


@pytest.mark.system
@pytest.mark.timing
def test_silent_readers_do_not_end_the_service(file: Path, config: Config, silent: ExitStack) -> None:
    few_descriptors = ("prlimit", "--nofile=100:100", COMMAND)
    with running(file, command=few_descriptors) as service:
        connect(silent, config, 150)
        for _ in range(3):
            began = time.monotonic()
            assert inventory.snapshot(config=config, max_age=0, deadline=30).vms
            assert time.monotonic() - began < 4.0, "it waits for nobody's silence to end"
        assert service.poll() is None
        silent.close()
        log = ended(service)
    assert "Traceback" not in log


def test_its_end_says_nothing_of_readers_that_wait(file: Path, config: Config) -> None:
    def wait() -> None:
        with suppress(NoService):
            inventory.wait_for_change(5, config=config)

    def readers(process: int) -> int:
        """How many are connected to the socket of the service, which listens on it as well."""
        sockets = psutil.Process(process).net_connections("unix")
        return sum(one.laddr.endswith(f"/{SOCKET_NAME}") for one in sockets) - 1

    with running(file) as service:
        inventory.snapshot(config=config, max_age=60)
        waiter = threading.Thread(target=wait)
        waiter.start()
        while not readers(service.pid):
            assert waiter.is_alive()
        log = ended(service)
        waiter.join(30)
    assert "Traceback" not in log


def test_a_lock_that_a_reader_holds_keeps_it_not_from_starting(file: Path, config: Config) -> None:
    config.inventory.directory.mkdir()
    held = os.open(config.inventory.directory, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_SH)
    with running(file) as service:
        ended(service)
    os.close(held)


def test_a_full_disk_ends_nothing_and_readers_are_answered(
    engine: EngineServer, file: Path, config: Config
) -> None:
    with running(file) as service:
        inventory.snapshot(config=config, max_age=60)
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        name = (RECORDING / "hosts.xml").read_bytes().replace(b"<name>bodh1<", b"<name>other<")
        engine.answer = lambda path: (200, name) if path == "/hosts" else None
        shown = inventory.snapshot(config=config, max_age=0, deadline=30)
        assert "other" in {host.name for host in shown.hosts}
        assert service.poll() is None


def seek(config: Config, vm: str) -> State:
    """Ask for the state once the engine was asked for a VM."""
    question = Refresh(now() - 60, vm=vm, known=None)
    return ask(config.inventory.directory, question, 30.0, State)


@pytest.mark.system
def test_who_asks_about_vms_that_do_not_exist_has_nothing_read_but_these(
    engine: EngineServer, file: Path, config: Config
) -> None:
    with running(file) as service:
        inventory.snapshot(config=config, max_age=60)
        whole, asked = readings(engine), polls(engine)
        stop = threading.Event()

        def ask_on(who: int) -> None:
            number = 0
            while not stop.is_set():
                number += 1
                assert seek(config, f"none-{who}-{number}").error is None

        with ThreadPoolExecutor() as askers:
            ended_askers = askers.map(ask_on, range(6))
            stop.wait(2.0)
            stop.set()
        assert len([*ended_askers]) == 6
        assert readings(engine) == whole
        assert polls(engine) - asked <= 16  # a quarter of a second apart
        ended(service)


def a_new_vm(config: Config) -> tuple[Vm, bytes]:
    """A VM that is known, and what the engine says of another one like it."""
    known = inventory.snapshot(config=config, max_age=60).vms[0]
    return known, (RECORDING / "vms.xml").read_bytes().replace(known.id.encode(), b"new-vm")


@pytest.mark.system
def test_a_vm_of_which_no_event_reports_is_found_when_it_is_asked_for(
    engine: EngineServer, file: Path, config: Config
) -> None:
    with running(file) as service:
        known, vm = a_new_vm(config)
        engine.answer = lambda path: (200, vm) if path.startswith("/vms?") else None
        seek(config, "new-vm")
        shown = inventory.snapshot(config=config, max_age=60)
        assert shown.vm_by_id["new-vm"].name == known.name
        assert engine.requests.count("/datacenters") == 1  # all was read but once
        ended(service)


def test_who_does_not_wait_for_a_vm_learns_at_once_that_it_is_awaited(
    engine: EngineServer, file: Path, config: Config
) -> None:
    def decided(vm: str, until_known: bool = False) -> Decided:
        """What a unit gets that asks again by itself."""
        question = Decide("filter", "AffinityFilter", ["h1"], vm, asks_again=True)
        while (found := ask(config.inventory.directory, question, 30.0, Decided)).awaited and until_known:
            time.sleep(0.01)
        return found

    with running(file) as service:
        known, vm = a_new_vm(config)
        hears = threading.Event()
        engine.answer = lambda path: (200, vm) if path.startswith("/vms?") and hears.wait(30) else None
        found = decided("new-vm")
        assert (found.awaited, found.hosts) == (True, [])
        assert "the engine has not answered yet about VM new-vm" in (found.failure or "")
        assert decided(known.id).failure is None
        hears.set()
        assert decided("new-vm", until_known=True).failure is None
        assert "the engine lists no VM nobody" in (decided("nobody", until_known=True).failure or "")
        ended(service)


def test_a_vm_that_is_read_and_not_published_yet_is_awaited() -> None:
    """Decisions go by the version: for a moment after a reading it is still the one before."""
    before, read = snapshot(vm("known", None)), snapshot(vm("known", None), vm("new-vm", None))
    moments = Moments(1.0)
    publisher = SimpleNamespace(state=SimpleNamespace(snapshot=read), version=Publication(1, moments, before))
    service: Any = SimpleNamespace(_publisher=publisher, _follower=SimpleNamespace(unknown_vms=UnknownVms()))
    asked = [Refresh(1.0, vm=name) for name in ("known", "new-vm")]
    assert [_Service._knows(service, one) for one in asked] == [True, False]
    publisher.version = Publication(2, moments, read)
    assert [_Service._knows(service, one) for one in asked] == [True, True]


def test_who_wants_all_read_is_not_put_off_by_a_smaller_reading_that_is_due() -> None:
    needs = Demands(statistics=frozenset({HOST_STATISTICS, VM_STATISTICS}))
    larger = reconciliations(InventorySettings())
    for scope, began in ((ReconciliationScope.WHOLE, 1.0), (ReconciliationScope.STATISTICS, 0.5)):
        larger[scope].require(1.0)
        larger[scope].began = began
    assert next_reading(larger, needs, 1.0)[0] is ReconciliationScope.STATISTICS
    ignored: Any = SimpleNamespace(want=lambda at: None, needs=needs)
    attempts: Any = SimpleNamespace(wanted=threading.Event())
    parts = dict.fromkeys(("_following", "_looking", "_follower"), ignored)
    service: Any = SimpleNamespace(**parts, _larger=larger, _lanes=(_Lane(attempts, larger),))
    _Service._want(service, Refresh(2.0, whole=True))
    assert attempts.wanted.is_set()
    assert next_reading(larger, needs, 2.0)[0] is ReconciliationScope.WHOLE


@pytest.mark.parametrize("name", ["", "..", "a b", "a or name=*", "a\nb", "x" * 65, "ä"])
def test_what_no_engine_can_have_is_not_looked_for(name: str) -> None:
    assert UnknownVms().is_known(name, 0.0)


def test_unknown_vms_are_looked_for_by_turns_and_remembered() -> None:
    unknown_vms = UnknownVms()
    for number in range(MOST_AT_ONCE + 1):
        unknown_vms.want(f"v{number}")
    first = unknown_vms.wanted()
    assert len(first) == MOST_AT_ONCE
    assert unknown_vms.wanted(first) == (f"v{MOST_AT_ONCE}",), "the others are being looked for"
    unknown_vms.found(first)
    unknown_vms.want("v0")  # what was found of it is published in a moment
    unknown_vms.published(10.0)
    assert unknown_vms.is_known("v0", 11.0)
    assert not unknown_vms.is_known("v0", 13.0)
    assert unknown_vms.wanted() == (f"v{MOST_AT_ONCE}",)
