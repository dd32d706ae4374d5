"""Our plugins as ovirt-scheduler-proxy runs them, one process a call, reading the engine themselves."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ovirt_placement.model import PlacementKey
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from tests.builders import APART, CLUSTER, SOFT_TOGETHER, TOGETHER, cluster, group, host, rule, snapshot, vm
from tests.enforcer.launching import simulator
from tests.plugins.proxy_process import PLUGINS
from tests.plugins.published import WITHOUT_PAST
from tests.stored import put_keys

pytestmark = pytest.mark.system

HOSTS = ["h1", "h2", "h3"]
STATE = snapshot(
    cluster(ha_reservation=True),
    *map(host, HOSTS),
    vm("new", ha=True, custom_properties={"placement_keys": "Repel1:1:-100"}),
    vm("nowhere", tags=("crowd",)),
    vm("friend", "h2", ha=True),
    vm("foe", "h3", tags=("crowd",)),
    vm("ha1", "h1", ha=True, custom_properties={"placement_keys": "Repel1:1:-100"}),
    group("together", TOGETHER, "new friend"),
    group("apart", APART, "new foe"),
    group("near", SOFT_TOGETHER, "new friend", hosts_rule=SOFT_TOGETHER, hosts="h1"),
)


def key(level: str, resource: str, name: str, value: float, weight: float | None = None) -> PlacementKey:
    return PlacementKey(
        level=level, resource=resource, key_class="system", name=name, value=value, weight=weight
    )


#: The first two hosts are found in round 4, the last one in round 10; one VM finds none.
KEYS = (
    *(key("node", host, "GEN", value) for host, value in zip(HOSTS, (1, 1, 0), strict=True)),
    key("cluster", CLUSTER, "GEN", 1, 60),
    key("server", "nowhere", "#LOAD", 0, -1000),
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


def run(environment: dict[str, str], call: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", call],
        cwd=PLUGINS,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (f"import affinity; affinity.AffinityFilter().do_filter({HOSTS}, 'new', {{}})", ["h2"]),
        (
            f"import affinity; affinity.SoftAffinityWeight().do_score({HOSTS}, 'new', {{}})",
            [("h1", 1), ("h2", 0), ("h3", 2)],
        ),
        (f"import host_affinity; host_affinity.HostAffinityFilter().do_filter({HOSTS}, 'new', {{}})", HOSTS),
        (
            f"import host_affinity; host_affinity.HostAffinityWeight().do_score({HOSTS}, 'new', {{}})",
            [("h1", 0), ("h2", 1), ("h3", 1)],
        ),
        (
            f"import ha_reservation; ha_reservation.HaReservationWeight().do_score({HOSTS}, 'new', {{}})",
            [("h1", 1), ("h2", 1), ("h3", 0)],
        ),
        (f"import ha_reservation; ha_reservation.HaReservationBalance().do_balance({HOSTS}, {{}})", ("", [])),
    ],
)
def test_unit_prints_its_answer_and_nothing_else(
    environment: dict[str, str], call: str, answer: object
) -> None:
    ended = run(environment, call)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ast.literal_eval(ended.stdout) == answer


def test_a_unit_loads_neither_rules_nor_what_takes_long() -> None:
    """The old proxy starts a Python for each call: what is loaded is most of what that costs."""
    loaded = "import sys; import affinity, ha_reservation; print(*sys.modules)"
    modules = set(run({**os.environ}, loaded).stdout.split())
    assert "ovirt_placement.units" in modules
    assert not modules & {
        "msgspec",
        "logging",
        "ovirt_placement.config",
        "ovirt_placement.inventory.publication",
    }
    assert not any(
        module.startswith(("ovirt_placement.rules", "ovirt_placement.model")) for module in modules
    )


@pytest.mark.parametrize(
    ("method", "vm_id", "args", "answer"),
    [
        ("Filter().do_filter", "new", {}, HOSTS),
        # Nothing stands for no host: proxies that took that for no answer are older than Python 3.
        ("Filter().do_filter", "nowhere", None, []),
        ("Weight().do_score", "new", {"placement_tie": "engine"}, [("h1", 1), ("h2", 0), ("h3", 2)]),
        ("Weight().do_score", "nowhere", {"placement_tie": "engine"}, [("h1", 0), ("h2", 0), ("h3", 0)]),
    ],
)
def test_keys_are_those_of_the_store_and_of_the_engines_vms(
    environment: dict[str, str], method: str, vm_id: str, args: dict[str, str] | None, answer: object
) -> None:
    ended = run(
        environment, f"import placement_keys; placement_keys.PlacementKey{method}({HOSTS}, '{vm_id}', {args})"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ast.literal_eval(ended.stdout) == answer


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("Filter().do_filter", ["h1", "h2"]),
        ("Weight().do_score", [("h1", 0), ("h2", 1), ("h3", 2)]),
    ],
)
def test_placement_rules_are_those_of_the_store(
    environment: dict[str, str], method: str, answer: object
) -> None:
    ended = run(
        environment,
        f"import placement_rules; placement_rules.PlacementRule{method}({HOSTS}, 'nowhere', {{}})",
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ast.literal_eval(ended.stdout) == answer


def test_vm_that_the_engine_does_not_list_is_said_in_one_sentence(environment: dict[str, str]) -> None:
    ended = run(environment, "import affinity; affinity.AffinityFilter().do_filter(['h1'], 'v9', {})")
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "Undecided: the engine lists no VM v9" in ended.stderr.splitlines()[-1]


def test_engine_that_is_away_is_said_in_one_sentence(environment: dict[str, str]) -> None:
    away = {**environment, "OVIRT_URL": "http://127.0.0.1:1/ovirt-engine/api"}
    ended = run(away, "import affinity; affinity.AffinityFilter().do_filter(['h1'], 'new', {})")
    assert ended.stdout == ""
    assert "http://127.0.0.1:1: " in ended.stderr.splitlines()[-1]
