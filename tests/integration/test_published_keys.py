"""Placement keys count for starts when both the engine and the store are gone, in either manner."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement import config
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.connection import NoAnswer, NoService
from ovirt_placement.inventory.publication import ask_moments
from ovirt_placement.store.keys import KeyStore, Run
from tests.builders import CLUSTER, host, key, node_key, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.launching import simulator
from tests.placement.inventory.running import ended, running
from tests.plugins.proxy_process import running_proxy
from tests.plugins.published import answered_alone
from tests.stored import put_keys

HOSTS = ["h1", "h2", "h3", "h4"]
STATE = snapshot(
    *(host(name, memory_free_mb=30000) for name in HOSTS),
    vm("web1", "h1"),
    vm("new", custom_properties={"placement_keys": "Repel1:1:-100"}),
)
FIXED = {"placement_tie": "engine"}
#: h4 is private, h3 is old, and on h1 there is a web server already.
ACCEPTED = ["h1", "h2", "h3"]
RANKS = {"h2": 0, "h1": 1, "h3": 2, "h4": 3}


KEYS = (
    *(node_key(name, "GEN", value) for name, value in zip(HOSTS, (1, 1, 0.5, 1), strict=True)),
    *(node_key(name, "PRIVATE", float(name == "h4")) for name in HOSTS),
    key("GEN", 1, 60, "cluster", resource=CLUSTER),
    key("PRIVATE", 1, -200),
)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What a process needs to ask a service that started again after its engine and its store were lost."""
    store = KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=30)
    put_keys(store, KEYS)
    store.begin_runs([Run("web1", None, (("Repel1", 1.0),))])
    store.close()
    with simulator(tmp_path, STATE, time_scale=1) as url:
        file = write_configuration(tmp_path, url, inventory="max_age_seconds = 3600")
        with running(file) as service:
            known = config.load(file, {})
            while inventory.snapshot(config=known).unread:  # what is not known yet refuses nothing
                inventory.wait_for_change(1.0, config=known)
            inventory.close()
            ended(service)
    for left in tmp_path.glob("store.db*"):
        left.unlink()
    with running(file, ready=False):
        while True:
            with suppress(NoService, NoAnswer):
                if ask_moments(known.inventory.directory, 5.0):
                    break
        yield {**os.environ, "OVIRT_PLACEMENT_CONFIG": str(file)}
    assert not (tmp_path / "store.db").exists()  # nobody has made it again


@pytest.mark.system
def test_new_processes_decide_by_the_keys_that_were_saved(environment: dict[str, str]) -> None:
    with running_proxy(environment) as proxy:
        filtered: Any = proxy.runFilters(["PlacementKeyFilter"], HOSTS, "new", {})
        assert (filtered["result_code"], filtered["result"]) == (0, ACCEPTED)
        weighed: Any = proxy.runCostFunctions([("PlacementKeyWeight", 1)], HOSTS, "new", FIXED)
        assert {found: rank for found, rank, _ in weighed["result"]} == RANKS
    unit = "placement_keys.PlacementKey"
    assert answered_alone(f"{unit}Filter().do_filter({HOSTS}, 'new', {{}})", environment) == ACCEPTED
    assert dict(answered_alone(f"{unit}Weight().do_score({HOSTS}, 'new', {FIXED})", environment)) == RANKS
