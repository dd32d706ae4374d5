"""A host's own contention ratio in the policy units: through a real proxy, with and without a service."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from demo.processes import Processes, address

from ovirt_placement.model import state_file
from ovirt_placement.store.keys import KeyStore
from tests.builders import host, snapshot, vm
from tests.configuration import write_configuration
from tests.placement.inventory.running import running
from tests.placement.rules.placement_keys.nodes import key, node_key
from tests.plugins.proxy_process import running_proxy
from tests.stored import put_keys

pytestmark = pytest.mark.system

HOSTS = ["h1", "h2", "h3"]
#: On each host 9 of 10 GiB are handed out, and half of the CPUs; much of the memory is not used.
STATE = snapshot(
    *(host(name, memory_mb=10240, cores=4, memory_free_mb=9000) for name in HOSTS),
    *(vm(f"on-{name}", name, needs_mb=9216, vcpus=2) for name in HOSTS),
    vm("new", needs_mb=2048),
)
KEYS = (
    node_key("h1", "#RAM_RATIO", 2),
    node_key("h2", "#RAM_RATIO", 2),
    node_key("h2", "#CPU_RATIO", 4),
    node_key("h3", "#RAM_RATIO", -2),
    key("#CPU", 0, 80, "cluster", resource="cluster1"),
)
WIDE = {"placement_memory_ratio": "2"}


@pytest.mark.parametrize("service", [True, False], ids=["with a service", "without"])
def test_a_hosts_own_ratio_counts_in_filter_and_weight(tmp_path: Path, service: bool) -> None:
    (tmp_path / "state.json").write_bytes(state_file.dumps(STATE))
    store = KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=30)
    put_keys(store, KEYS)
    store.close()
    simulator = f"ovirt-simulator run --listen 127.0.0.1:0 --state {tmp_path}/state.json"
    with Processes(tmp_path) as processes:
        url = address(processes.start("ovirt-simulator", simulator.split()))
        file = write_configuration(tmp_path, f"{url}/ovirt-engine/api", inventory="max_age_seconds = 3600")
        environment = {**os.environ, "OVIRT_PLACEMENT_CONFIG": str(file)}
        with running(file) if service else nullcontext(), running_proxy(environment) as proxy:

            def accepted(**parameters: str) -> Any:
                reply: Any = proxy.runFilters(["PlacementKeyFilter"], HOSTS, "new", parameters)
                assert reply["result_code"] == 0, reply
                return reply["result"]

            assert accepted() == ["h1", "h2"]  # the ratio of h3 cannot be: it counts as the cluster says
            assert accepted(**WIDE) == HOSTS
            assert accepted(placement_memory_ratio="0.5") == ["h1", "h2"]
            reply: Any = proxy.runCostFunctions(
                [("PlacementKeyWeight", 1)], HOSTS, "new", {**WIDE, "placement_tie": "engine"}
            )
            ranks = {found: rank for found, rank, _ in reply["result"]}
            assert ranks == {"h2": 0, "h1": 1, "h3": 1}
