"""Reading the engine without a service: what keys refer to, by turns, over a store in any state."""

import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.config import Config
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.client import READERS, EngineState
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.inventory.on_demand import Demands, referred
from ovirt_placement.model import Pending, Snapshot
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.keys import KeyStore
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests import builders as build
from tests.builders import key
from tests.configuration import write_configuration
from tests.placement.engine.simulated import owned, simulated
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, loaded, readings
from tests.placement.store.conftest import at_once
from tests.plugins.published import Publisher
from tests.stored import prepared, put_keys

STATE = owned(1)
FOREVER = 3600.0


@pytest.fixture
def server() -> Iterator[Server]:
    with simulated(STATE) as (_, running, _):
        yield running


@pytest.fixture
def reader(server: Server, tmp_path: Path) -> Iterator[EngineState]:
    with closing(EngineState(loaded(write_configuration(tmp_path, server.api_url)))) as found:
        yield found


def read(reader: EngineState, *levels: str, max_age: float = 0.0) -> Snapshot:
    return reader.read(max_age, time.monotonic() + 30, Demands(referred(levels)))


def test_what_keys_refer_to_is_there_and_nothing_else_is_asked_for(
    server: Server, reader: EngineState
) -> None:
    (reported,) = STATE.vms
    for level, disks, owner in (("disk", reported.disks, None), ("customer", (), "user0")):
        (vm,) = read(reader, level).vms
        assert (vm.disks, vm.nics, vm.owner) == (disks, (), owner)
    found = read(reader, "network")
    assert found.vms[0].nics == reported.nics
    assert (found.networks, found.vnic_profiles) == (STATE.networks, STATE.vnic_profiles)
    details = "disk|nics|permissions|tags|networks|vnicprofiles"
    server.disturbances.add(Disturbance(path=details, status=500, times=None))
    (vm,) = read(reader, "cluster", "server", "image", "server_offer").vms
    assert (vm.disks, vm.nics, vm.owner) == ((), (), None)


def test_a_snapshot_that_lacks_what_a_new_key_refers_to_is_not_young_enough(reader: EngineState) -> None:
    first = read(reader, "disk")
    assert read(reader, "disk", max_age=FOREVER) is first
    assert read(reader, max_age=FOREVER) is first
    second = read(reader, "disk", "nic", max_age=FOREVER)
    assert second is not first
    assert second.vms[0].nics == STATE.vms[0].nics
    assert read(reader, "nic", max_age=FOREVER) is second


#: Long enough for another reader to come, if it may.
HELD_SECONDS = 0.1


class Counted:
    """Counts how many requests for hosts the engine answers at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    def __call__(self, path: str) -> None:
        if path != "/hosts":
            return
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        threading.Event().wait(HELD_SECONDS)
        with self._lock:
            self._now -= 1


@pytest.mark.system
@pytest.mark.timing
def test_few_read_the_engine_at_the_same_time(engine: EngineServer, config: Config) -> None:
    engine.answer = counted = Counted()
    readers = [EngineState(config) for _ in range(3 * READERS)]

    def read(reader: EngineState) -> Snapshot:
        return reader.read(0.0, time.monotonic() + 60)

    with ThreadPoolExecutor(len(readers)) as threads:
        assert len(list(threads.map(read, readers))) == len(readers)
    assert counted.most == READERS


#: Knows nothing yet when it has no descriptors left, and reads the engine once it has some again.
READER = """
import os, pathlib, resource, sys
from ovirt_placement import config
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.inventory.client import snapshot
settings = config.load(pathlib.Path(sys.argv[1]), {})
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1, hard))
try:
    snapshot(config=settings)
except NoSnapshot as error:
    print(error)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
print(len(snapshot(config=settings, deadline=60).vms) > 0)
"""


@pytest.mark.system
def test_without_a_descriptor_there_is_no_snapshot_and_with_one_there_is(
    tmp_path: Path, engine: EngineServer
) -> None:
    file = configured(tmp_path, engine)
    ran = subprocess.run(
        [sys.executable, "-c", READER, str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.stdout.splitlines() == ["Too many open files", "True"], ran.stderr


#: From the recording: a VM that is up on the one host, and the other host.
VM = "848d9f0c-c171-48a2-864c-f454c8eeae37"
SOURCE = "9be35c00-6523-4c2f-89d2-680a6b6da4c0"
TARGET = "ce40bb38-f10a-43f3-8e15-d0ffad692a19"


@pytest.fixture
def config(tmp_path: Path, engine: EngineServer) -> Config:
    """Waits for the store as long as a busy machine takes: a decision would go on without it."""
    return loaded(write_configuration(tmp_path, engine.url, store="patience_seconds = 30.0"))


@pytest.fixture
def store(config: Config) -> Iterator[Store]:
    with closing(Store(config.store.url, engine="default")) as opened:
        prepared(opened, VM, source=SOURCE, target=TARGET, memory_mb=77)
        yield opened


def test_without_a_service_the_engine_is_read_and_shared_by_threads(
    engine: EngineServer, config: Config
) -> None:
    first, *others = at_once(8, lambda number: inventory.snapshot(config=config, max_age=30))
    assert isinstance(first, Snapshot)
    assert [other is first for other in others] == [True] * 7
    assert readings(engine) == 1


def test_what_was_read_before_a_service_ran_is_forgotten(config: Config) -> None:
    config.inventory.directory.mkdir()
    with closing(EngineState(config)) as read:
        read.base(0.0, time.monotonic() + 30.0)
        assert None not in (read.as_of(), read.last())
        later = time.time() + 1.0
        os.utime(config.inventory.directory, (later, later))
        assert (read.as_of(), read.last()) == (None, None)


def test_without_service_and_engine_there_is_no_snapshot(engine: EngineServer, config: Config) -> None:
    engine.answer = lambda path: (503, b"<html>")
    with pytest.raises(NoSnapshot, match=r"^http.*the engine is starting or stopping"):
        inventory.snapshot(config=config)
    engine.answer = lambda path: None
    assert inventory.snapshot(config=config).vms


@pytest.mark.timing
def test_an_engine_that_hangs_costs_no_more_than_the_deadline(engine: EngineServer, config: Config) -> None:
    release = threading.Event()
    engine.answer = lambda path: (release.wait(), None)[1]
    with pytest.raises(NoSnapshot, match="the engine has not answered yet"):
        inventory.snapshot(config=config, deadline=0.2)
    release.set()
    assert inventory.snapshot(config=config, deadline=30).vms


def test_open_intents_are_pending_with_their_memory(config: Config, store: Store) -> None:
    expected = (Pending(vm=VM, host=TARGET, memory_mb=77),)
    first = inventory.snapshot(config=config, max_age=30)
    assert first.pending == expected
    assert inventory.snapshot(config=config, max_age=30) is first  # what it has indexed is kept
    store.accept(1)
    assert inventory.snapshot(config=config, max_age=30).pending == expected
    store.finish(1)
    assert inventory.snapshot(config=config, max_age=30).pending == ()


def test_a_store_that_is_not_there_is_none(config: Config) -> None:
    assert inventory.snapshot(config=config).pending == ()


def test_engines_that_share_a_store_are_asked_in_turns_and_never_mixed(
    config: Config, store: Store, tmp_path: Path
) -> None:
    """All that distinguishes them here is the name: the ids are the same, and so is what answers."""
    file = tmp_path / "other.toml"
    file.write_text(Path(config.source).read_text().replace("[engine]", '[engine]\nname = "other"'))
    other = loaded(file)
    with closing(Store(config.store.url, engine="other", patience_seconds=30)) as theirs:
        prepared(theirs, VM, "two", source=SOURCE, target=TARGET, memory_mb=88)
    for name in ("default", "other"):
        with closing(KeyStore(config.store.url, engine=name, patience_seconds=30)) as keys:
            put_keys(keys, [key(name, resource=VM)])
    for _ in range(2):
        for asked, name, memory_mb in ((config, "default", 77), (other, "other", 88)):
            found = inventory.snapshot(config=asked, max_age=30)
            assert found.pending == (Pending(vm=VM, host=TARGET, memory_mb=memory_mb),)
            assert found.placement_keys == (key(name, resource=VM),)


@pytest.mark.system
@pytest.mark.timing
def test_a_locked_store_holds_up_no_answer(engine: EngineServer, store: Store, tmp_path: Path) -> None:
    store.close()
    hasty = loaded(write_configuration(tmp_path, engine.url))
    locker = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    locker.execute("PRAGMA locking_mode=EXCLUSIVE")
    locker.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    for _ in range(5):
        assert inventory.snapshot(config=hasty, max_age=30).vms
    assert time.monotonic() - began < 5 * 0.5  # 50 ms each, on a machine that may be very busy
    locker.close()


@pytest.mark.system
def test_a_store_that_never_answers_is_reported_and_holds_up_no_answer(
    engine: EngineServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/store"
        asked = loaded(write_configuration(tmp_path, engine.url, store_url=url))
        for _ in range(3):
            assert inventory.snapshot(config=asked, max_age=30).vms
        assert caplog.text.count("open migrations are unknown: the store has not answered yet") == 1
        assert caplog.text.count("placement keys cannot be read: the store does not answer") == 1


def test_a_new_version_has_what_was_looked_up_in_the_one_before(tmp_path: Path) -> None:
    """A look-up of ten thousand VMs would else be the most of what its first decision costs."""
    publisher = Publisher(tmp_path)
    host, other = build.host("h1"), build.host("h2")
    publisher.publish(build.snapshot(host, other, build.vm("v1", "h1"), build.vm("v2", "h1")))
    config = loaded(publisher.config)
    before = inventory.snapshot(config=config)
    looked_up = before.vm_by_id
    publisher.publish(replace(before, vms=(before.vms[0], build.vm("v2", "h2"))))
    after = inventory.snapshot(config=config)
    assert "vm_by_id" in vars(after)
    assert after.vm_by_id == {vm.id: vm for vm in after.vms} != looked_up
