"""`ovirt-placement snapshot` prints what the reader reads, configured by file or by Ansible's variables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import FrozenKeys, PlacementKey
from ovirt_placement.model.files import state_file
from ovirt_placement.store.keys import KeyStore, Run
from tests.placement.engine_server import PASSWORD, EngineServer, serving
from tests.placement.inventory.running import configured
from tests.placement.model.full_state import full_state
from tests.processes import completed
from tests.stored import put_keys


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineServer]:
    with serving(EngineServer()) as server:
        yield server


def printed(*arguments: str, **environment: str) -> bytes:
    with TemporaryDirectory() as folder:
        ended = completed(main, arguments, Path(folder, "log"), environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.encode()


def test_a_live_engine_is_printed_as_a_state_file(engine: EngineServer) -> None:
    state = printed(
        "snapshot", OVIRT_URL=engine.url, OVIRT_USERNAME="admin@internal", OVIRT_PASSWORD=PASSWORD
    )
    settings = EngineSettings(url=engine.url, username="admin@internal")
    with EngineConnection(settings, {"OVIRT_PASSWORD": PASSWORD}) as connection:
        assert state_file.loads(state) == read_snapshot(connection)


def test_a_state_file_is_checked_and_printed_again(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(json.dumps(full_state()))
    assert state_file.loads(printed("snapshot", "--state", str(file))) == state_file.load(file)


def test_statistics_and_devices_are_asked_for_only_on_demand(engine: EngineServer) -> None:
    variables = {"OVIRT_URL": engine.url, "OVIRT_USERNAME": "admin@internal", "OVIRT_PASSWORD": PASSWORD}
    engine.requests.clear()
    printed("snapshot", **variables)
    assert not any("statistics" in request or "nics" in request for request in engine.requests)
    printed("snapshot", "--statistics", "--devices", **variables)
    assert "/vms?follow=statistics" in engine.requests
    details = quote("disk_attachments.disk,nics,tags,permissions", safe=".")
    assert any(request.startswith("/vms?") and details in request for request in engine.requests)


def test_placement_keys_of_the_store_are_printed_but_for_those_of_what_is_gone(
    engine: EngineServer, tmp_path: Path
) -> None:
    state = state_file.loads(printed("snapshot", "--config", str(configured(tmp_path, engine))))
    assert (state.placement_keys, state.frozen_keys) == ((), ())
    there, gone = (
        PlacementKey(level="server", resource=vm, key_class="customer", name="A", value=0.1, weight=5.0)
        for vm in (state.vms[0].id, "gone")
    )
    store = KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=30)
    put_keys(store, [there, gone])
    store.begin_runs([Run(vm, None, (("A", 0.1),)) for vm in (state.vms[0].id, "gone")])
    store.close()
    found = state_file.loads(printed("snapshot", "--config", str(tmp_path / "placement.toml")))
    assert found.placement_keys == (there,)
    assert found.frozen_keys == (FrozenKeys(state.vms[0].id, (("A", 0.1),)),)
    (tmp_path / "store.db").write_text("no database" * 100)
    assert state_file.loads(printed("snapshot", "--config", str(tmp_path / "placement.toml"))) == state


def test_the_version_is_that_of_the_package() -> None:
    assert printed("--version").decode() == f"ovirt-placement {version('ovirt-placement')}\n"
