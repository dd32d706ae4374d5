"""Our plugins as ovirt-scheduler-proxy runs them, one process a call, reading the engine themselves."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    key,
    node_key,
    rule,
    snapshot,
    vm,
)
from tests.enforcer.launching import simulator
from tests.paths import PLUGINS
from tests.plugins.published import WITHOUT_PAST, answered_alone, run_alone
from tests.stored import put_keys

pytestmark = pytest.mark.system

HOSTS = ["h1", "h2", "h3"]
STATE = snapshot(
    cluster(ha_reservation=True), *map(host, HOSTS),
    vm("new", ha=True, custom_properties={"placement_keys": "Repel1:1:-100"}), vm("nowhere", tags=("crowd",)),
    vm("friend", "h2", ha=True), vm("foe", "h3", tags=("crowd",)),
    vm("ha1", "h1", ha=True, custom_properties={"placement_keys": "Repel1:1:-100"}),
    group("together", TOGETHER, "new friend"), group("apart", APART, "new foe"),
    group("near", SOFT_TOGETHER, "new friend", hosts_rule=SOFT_TOGETHER, hosts="h1"),
)  # fmt: skip


#: The first two hosts are found in round 4, the last one in round 10; one VM finds none.
KEYS = (
    *(node_key(host, "GEN", value) for host, value in zip(HOSTS, (1, 1, 0), strict=True)),
    key("GEN", 1, 60, "cluster", resource=CLUSTER),
    key("#LOAD", 0, -1000, resource="nowhere"),
)

#: Who is meant by the first only the engine's tags show.
RULES = (
    rule("few", "at_most_per_host", "tag:crowd", most=1),
    rule("far", "separate", "nowhere", other_vms="friend", enforcing=False),
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A running simulated engine, and what a process needs to reach it."""
    folder = tmp_path_factory.mktemp("engine")
    store = KeyStore(f"sqlite:///{folder}/store.db", engine="default", patience_seconds=30)
    put_keys(store, KEYS)
    store.close()
    rules = RuleStore(f"sqlite:///{folder}/store.db", engine="default", patience_seconds=30)
    rules.change(lambda standing: RuleChange(put=RULES), changed_by="ann")
    rules.close()
    config = folder / "ovirt-placement.toml"
    config.write_text(
        f'[inventory]\ndirectory = "{folder}"\n{WITHOUT_PAST}\n[store]\nurl = "sqlite:///{folder}/store.db"\n'
    )
    with simulator(folder, STATE, time_scale=1) as url:
        yield {
            **os.environ,
            "OVIRT_PLACEMENT_CONFIG": str(config),
            "OVIRT_URL": url,
            "OVIRT_USERNAME": "admin@internal",
            "OVIRT_PASSWORD": "password",
        }


TIE = {"placement_tie": "engine"}


@pytest.mark.parametrize(
    ("unit", "vm_id", "args", "answer"),
    [
        ("affinity.AffinityFilter", "new", {}, ["h2"]),
        ("affinity.SoftAffinityWeight", "new", {}, [("h1", 1), ("h2", 0), ("h3", 2)]),
        ("host_affinity.HostAffinityFilter", "new", {}, HOSTS),
        ("host_affinity.HostAffinityWeight", "new", {}, [("h1", 0), ("h2", 1), ("h3", 1)]),
        ("ha_reservation.HaReservationWeight", "new", {}, [("h1", 1), ("h2", 1), ("h3", 0)]),
        # Keys and rules are those of the store and of the engine's VMs.
        ("placement_keys.PlacementKeyFilter", "new", {}, HOSTS),
        # Nothing stands for no host: proxies that took that for no answer are older than Python 3.
        ("placement_keys.PlacementKeyFilter", "nowhere", None, []),
        ("placement_keys.PlacementKeyWeight", "new", TIE, [("h1", 1), ("h2", 0), ("h3", 2)]),
        ("placement_keys.PlacementKeyWeight", "nowhere", TIE, [("h1", 0), ("h2", 0), ("h3", 0)]),
        ("placement_rules.PlacementRuleFilter", "nowhere", {}, ["h1", "h2"]),
        ("placement_rules.PlacementRuleWeight", "nowhere", {}, [("h1", 0), ("h2", 1), ("h3", 2)]),
    ],
)
def test_unit_prints_its_answer_and_nothing_else(
    environment: dict[str, str], unit: str, vm_id: str, args: dict[str, str] | None, answer: object
) -> None:
    method = "do_filter" if unit.endswith("Filter") else "do_score"
    assert answered_alone(f"{unit}().{method}({HOSTS}, {vm_id!r}, {args})", environment) == answer


def test_balance_that_moves_nothing_prints_two_empty_fields(environment: dict[str, str]) -> None:
    call = f"ha_reservation.HaReservationBalance().do_balance({HOSTS}, {{}})"
    assert answered_alone(call, environment) == ("", [])


def test_a_unit_loads_neither_rules_nor_what_takes_long() -> None:
    """The old proxy starts a Python for each call: what is loaded is most of what that costs."""
    code = "import sys; import affinity, ha_reservation; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=PLUGINS, capture_output=True, check=True)
    modules = set(loaded.stdout.decode().split())
    assert "ovirt_placement.units" in modules
    assert not modules & {
        "msgspec",
        "logging",
        "ovirt_placement.config",
        "ovirt_placement.inventory.publication",
    }
    assert not [one for one in modules if one.startswith(("ovirt_placement.rules", "ovirt_placement.model"))]


@pytest.mark.parametrize(
    ("vm_id", "more", "said"),
    [
        ("v9", {}, "Undecided: the engine lists no VM v9"),
        ("new", {"OVIRT_URL": "http://127.0.0.1:1/ovirt-engine/api"}, "http://127.0.0.1:1: "),
    ],
    ids=["a VM that it does not list", "an engine that is away"],
)
def test_what_the_engine_does_not_answer_is_said_in_one_sentence(
    environment: dict[str, str], vm_id: str, more: dict[str, str], said: str
) -> None:
    ended = run_alone(f"affinity.AffinityFilter().do_filter(['h1'], '{vm_id}', {{}})", environment | more)
    assert (ended.returncode != 0, ended.stdout) == (True, "")
    assert said in ended.stderr.splitlines()[-1]
