"""A VM goes to another cluster: the engine takes it out of its groups and labels, and shows nobody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ovirtsdk4 import Connection, Error, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.builders import APART, SOFT_TOGETHER, cluster, group, host, label, vm
from tests.simulator.core import engines

STATE = (
    cluster("blue", data_center="dc1"),
    cluster("red", data_center="dc1"),
    cluster("far", data_center="dc2"),
    host("h1", cluster="blue"),
    host("h2", cluster="red"),
    vm("idle", cluster="blue", pinned_hosts=("h1",), cpu_profile="of-blue"),
    vm("free", cluster="blue"),
    vm("busy", "h1", cluster="blue"),
    vm("native", cluster="red", cpu_profile="of-red"),
    group("near", SOFT_TOGETHER, "idle busy", cluster="blue"),
    group("off", APART, "busy free", vm_labels=("ours",), cluster="blue"),
    group("theirs", APART, "native", cluster="red", vm_labels=("ours",)),
    label("ours", "idle busy", "h1"),
)


@pytest.fixture
def engine() -> Engine:
    return engines.engine(*STATE)


@pytest.fixture
def server(engine: Engine) -> Iterator[Server]:
    running = serve(engine)
    yield running
    running.close()


@pytest.fixture
def sdk(server: Server) -> Iterator[Connection]:
    with Connection(url=server.api_url, username="admin@internal", password="password") as connection:
        yield connection


def put(sdk: Connection, vm_id: str, cluster: types.Cluster, **more: object) -> types.Vm:
    service = sdk.system_service().vms_service().vm_service(vm_id)
    return service.update(types.Vm(cluster=cluster, **more))


def members(sdk: Connection) -> dict[str, list[str]]:
    """The VMs of every group and label, as the API shows them."""
    system = sdk.system_service()
    clusters = system.clusters_service()
    groups = [
        group
        for cluster in ("blue", "red")
        for group in clusters.cluster_service(cluster).affinity_groups_service().list()
    ]
    labels = system.affinity_labels_service().list(follow="vms")
    return {one.name: [vm.id for vm in one.vms or ()] for one in (*groups, *labels)}


@pytest.mark.parametrize("target", [types.Cluster(id="red"), types.Cluster(name="red")])
def test_it_is_taken_out_of_groups_and_labels_and_no_event_says_so(
    sdk: Connection, engine: Engine, target: types.Cluster
) -> None:
    before = members(sdk)
    assert before == {"near": ["idle", "busy"], "off": ["busy", "free"], "theirs": ["native"],
                      "ours": ["idle", "busy"]}  # fmt: skip
    assert put(sdk, "idle", target).cluster.id == "red"
    after = members(sdk)
    assert after == {**before, "near": ["busy"], "ours": ["busy"]}
    assert set(engines.codes(engine)) <= {35, 250}


def test_its_hosts_are_cleared_and_it_takes_a_cpu_profile_of_there(sdk: Connection, engine: Engine) -> None:
    moved = put(sdk, "idle", types.Cluster(id="red"))
    assert moved.placement_policy.hosts in (None, [])
    assert moved.cpu_profile.id == "of-red"
    assert engines.codes(engine) == [250, 35], "the change of the cluster, and that of all else"
    assert "Default host was reset to auto assign." in engine.queries.events()[-2].description
    put(sdk, "free", types.Cluster(id="red"))
    assert engines.codes(engine) == [250, 35, 35, 35]


def test_the_rest_of_the_body_counts_in_the_new_cluster(sdk: Connection, engine: Engine) -> None:
    policy = types.VmPlacementPolicy(hosts=[types.Host(id="h2")])
    moved = put(sdk, "idle", types.Cluster(id="red"), description="new", placement_policy=policy)
    assert (moved.description, [host.id for host in moved.placement_policy.hosts]) == ("new", ["h2"])
    sdk.system_service().vms_service().vm_service("idle").start()
    assert engines.vm(engine, "idle").host == "h2"


def test_it_has_moved_though_the_rest_is_refused(sdk: Connection, engine: Engine) -> None:
    """Two commands, of which the first is done when the second is refused."""
    policy = types.VmPlacementPolicy(hosts=[types.Host(id="h1")])
    with pytest.raises(Error, match="not in the same cluster"):
        put(sdk, "idle", types.Cluster(id="red"), placement_policy=policy)
    assert engines.vm(engine, "idle").cluster == "red"
    assert members(sdk)["near"] == ["busy"]


def test_its_own_cluster_changes_nothing(sdk: Connection, engine: Engine) -> None:
    before = members(sdk)
    for vm_id in ("idle", "busy"):
        put(sdk, vm_id, types.Cluster(id="blue"))
    assert members(sdk) == before
    assert engines.vm(engine, "idle").pinned_hosts == ("h1",)
    assert engines.codes(engine) == [35, 35]


@pytest.mark.parametrize(
    ("vm_id", "target", "code", "words"),
    [
        (
            "busy",
            types.Cluster(id="red"),
            409,
            "Cannot update a VM in this status. Try stopping the VM first.",
        ),
        ("idle", types.Cluster(id="nowhere"), 400, "Cluster ID is not valid"),
        ("idle", types.Cluster(name="nowhere"), 404, "Entity not found: Cluster: name=nowhere"),
        ("idle", types.Cluster(id="far"), 409, "only to a Cluster in the same Data Center"),
    ],
)
def test_what_the_engine_refuses(
    sdk: Connection, engine: Engine, vm_id: str, target: types.Cluster, code: int, words: str
) -> None:
    before = members(sdk), engines.vm(engine, vm_id)
    with pytest.raises(Error, match=words) as caught:
        put(sdk, vm_id, target, description="x")
    assert caught.value.code == code
    assert (members(sdk), engines.vm(engine, vm_id)) == before
    assert engines.codes(engine) == []


def test_a_suspended_vm_is_not_down(sdk: Connection, engine: Engine) -> None:
    engine.vms.suspend("busy")
    engine.advance(60)
    assert engines.where(engine, "busy") == ("suspended", None)
    with pytest.raises(Error, match="Try stopping the VM first"):
        put(sdk, "busy", types.Cluster(id="red"))


def test_who_may_only_read_is_refused(server: Server, engine: Engine) -> None:
    with (
        Connection(url=server.api_url, username="reader@internal", password="password") as reader,
        pytest.raises(Error) as caught,
    ):
        put(reader, "idle", types.Cluster(id="red"))
    assert caught.value.code == 403
    assert engines.vm(engine, "idle").cluster == "blue"
