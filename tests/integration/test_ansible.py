"""Ansible's `ovirt.ovirt` modules, unmodified: what they do to a simulated engine, its REST API shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ovirtsdk4
import pytest
from lxml import etree

from tests.integration.ansible_playbook import Results, play, simulated_engine
from tests.simulator.http.world import WORLD

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ansible")


@pytest.fixture
def engine(folder: Path) -> Iterator[str]:
    with simulated_engine(WORLD, folder) as url:
        yield url


@pytest.fixture
def sdk(engine: str) -> Iterator[ovirtsdk4.Connection]:
    with ovirtsdk4.Connection(engine, "admin@internal", "password") as connection:
        yield connection


def shown(results: Results, task: str, name: str) -> etree._Element | None:
    """Give the entity of this name in what the REST API answered to a task, if it is there."""
    root = etree.fromstring(results[task]["content"].encode())
    return next((node for node in [root, *root] if node.findtext("name") == name), None)


def text(node: etree._Element | None, path: str) -> str | None:
    assert node is not None
    return node.findtext(path)


def ids(node: etree._Element | None, path: str) -> set[str | None]:
    assert node is not None
    return {item.get("id") for item in node.findall(path)}


def rules(node: etree._Element | None) -> dict[str, tuple[str | None, ...]]:
    """Give enabled, positive and enforcing of both rules of an affinity group."""
    words = ("enabled", "positive", "enforcing")
    return {
        rule: tuple(text(node, f"{rule}/{word}") for word in words) for rule in ("vms_rule", "hosts_rule")
    }


def changes(results: Results, *tasks: str) -> dict[str, bool]:
    return {task: results[task]["changed"] for task in tasks}


def names(found: list[dict[str, Any]]) -> list[str]:
    return [entity["name"] for entity in found]


@pytest.fixture(scope="module")
def group_results(folder: Path) -> Results:
    with simulated_engine(WORLD, folder) as url:
        return play("affinity_group.yml", url, folder)


def test_affinity_groups(group_results: Results) -> None:
    results = group_results
    assert changes(results, "try to create", "create", "create again") == {
        "try to create": True,
        "create": True,
        "create again": False,
    }
    assert shown(results, "read after trying", "databases") is None
    group = shown(results, "read after creating", "databases")
    assert group is not None
    assert group.get("id") == results["create"]["id"]
    assert text(group, "description") == "one a host"
    assert rules(group) == {"vms_rule": ("true", "false", "true"), "hosts_rule": ("true", "true", "false")}
    assert ids(group, "vms/vm") == {"idle", "spare"}
    assert ids(group, "hosts/host") == {"host1", "host2"}
    assert ids(group, "vm_labels/affinity_label") == {"backend"}
    assert ids(group, "host_labels/affinity_label") == {"backend", "empty"}

    assert changes(results, "update", "update again") == {"update": True, "update again": False}
    group = shown(results, "read after updating", "databases")
    assert text(group, "description") == "not on gamma"
    assert rules(group) == {"vms_rule": ("true", "true", "false"), "hosts_rule": ("true", "false", "true")}
    assert ids(group, "vms/vm") == {"spare", "db1"}
    assert ids(group, "hosts/host") == {"host3"}
    assert ids(group, "vm_labels/affinity_label") == set()
    assert ids(group, "host_labels/affinity_label") == {"empty"}

    assert results["disable both rules"]["changed"]
    group = shown(results, "read after disabling", "databases")
    assert text(group, "vms_rule/enabled") == "false"
    assert ids(group, "vms/vm") == set()
    assert text(group, "description") == "not on gamma", "what is not given stays"

    assert changes(results, "remove", "remove again") == {"remove": True, "remove again": False}
    assert shown(results, "read after removing", "databases") is None
    assert shown(results, "read after removing", "together") is not None


def test_affinity_groups_that_the_engine_refuses(group_results: Results) -> None:
    results = group_results
    assert results["tear apart what another group ties"]["changed"], "adding members is not checked"
    torn = shown(results, "read after tearing", "torn")
    assert ids(torn, "vms/vm") == {"web1", "web2"}
    refused = results["change what is torn"]
    assert refused["failed"]
    assert "HTTP response code is 409" in refused["msg"]
    assert "collision" in refused["msg"]
    assert results["ask for a VM that is not there"]["msg"] == "Entity 'nowhere' was not found."
    assert results["ask for a cluster that is not there"]["msg"] == "Cluster 'Nowhere' was not found."


def test_affinity_labels(engine: str, folder: Path) -> None:
    results = play("affinity_label.yml", engine, folder)
    assert changes(results, "create", "create again") == {"create": True, "create again": False}
    label = shown(results, "read after creating", "gpu")
    assert label is not None
    assert label.get("id") == results["create"]["id"]
    assert (ids(label, "vms/vm"), ids(label, "hosts/host")) == ({"web1", "idle"}, {"host1"})

    assert results["try to update"]["changed"]
    label = shown(results, "read after trying", "gpu")
    assert (ids(label, "vms/vm"), ids(label, "hosts/host")) == ({"web1", "idle"}, {"host1"})
    assert changes(results, "update", "update again") == {"update": True, "update again": False}
    label = shown(results, "read after updating", "gpu")
    assert (ids(label, "vms/vm"), ids(label, "hosts/host")) == ({"idle", "spare"}, {"host2"})

    assert results["take from hosts only"]["changed"]
    label = shown(results, "read after taking", "gpu")
    assert (ids(label, "vms/vm"), ids(label, "hosts/host")) == ({"idle", "spare"}, set())
    assert names(results["list labels of a VM"]["ovirt_affinity_labels"]) == ["gpu"]

    assert changes(results, "remove", "remove again") == {"remove": True, "remove again": False}
    assert shown(results, "read after removing", "gpu") is None
    assert ids(shown(results, "read after removing", "backend"), "vms/vm") == {"db1", "idle"}


def test_information(engine: str, folder: Path, sdk: ovirtsdk4.Connection) -> None:
    system = sdk.system_service()
    policies = system.scheduling_policies_service().list()
    results = play("info.yml", engine, folder, policy=policies[1].id)

    def vms(task: str) -> list[dict[str, Any]]:
        return results[task]["ovirt_vms"]

    listed = {vm.id: vm for vm in system.vms_service().list()}
    assert {vm["id"] for vm in vms("all VMs")} == set(listed)
    for vm in vms("all VMs"):
        shown_vm = listed[vm["id"]]
        assert (vm["name"], vm["memory"]) == (shown_vm.name, shown_vm.memory)
        assert vm["status"] == (shown_vm.status and shown_vm.status.value)
        assert vm.get("host", {}).get("id") == (shown_vm.host and shown_vm.host.id)
        assert vm["placement_policy"]["affinity"] == shown_vm.placement_policy.affinity.value
    assert names(vms("VMs by name and cluster")) == ["web1", "web2", "web3"]
    assert names(vms("VMs by status and host")) == ["db1", "manual", "web2"]
    assert names(vms("two VMs")) == names(vms("all VMs"))[:2]
    (followed,) = vms("VMs with what they link to")
    assert followed["host"]["name"] == "alpha"
    assert set(names(followed["tags"])) == {"red", "blue"}
    assert vms("VMs by what is no field") == []

    def hosts(task: str) -> list[dict[str, Any]]:
        return results[task]["ovirt_hosts"]

    for host in hosts("all hosts"):
        shown_host = system.hosts_service().host_service(host["id"]).get()
        assert (host["name"], host["status"]) == (shown_host.name, shown_host.status.value)
        assert host["max_scheduling_memory"] == shown_host.max_scheduling_memory
        assert host["summary"]["active"] == shown_host.summary.active
    assert names(hosts("all hosts")) == ["alpha", "beta", "far", "gamma"]
    assert names(hosts("hosts by name and cluster")) == ["alpha", "beta", "gamma"]
    assert names(hosts("hosts by status")) == ["gamma"]
    assert names(hosts("hosts by version")) == ["alpha", "beta", "gamma"]

    assert names(results["all clusters"]["ovirt_clusters"]) == ["Default", "Second <&>"]
    (default,) = results["clusters by name"]["ovirt_clusters"]
    shown_cluster = system.clusters_service().cluster_service("cluster1").get()
    assert default["scheduling_policy"]["id"] == shown_cluster.scheduling_policy.id
    assert default["ha_reservation"] is True
    assert {group["name"]: len(group["vms"]) for group in default["affinity_groups"]} == {
        "apart": 2,
        "near": 1,
        "together": 2,
    }

    found = results["all policies"]["ovirt_scheduling_policies"]
    assert names(found) == [policy.name for policy in policies]
    for policy in found:
        service = system.scheduling_policies_service().policy_service(policy["id"])
        assert len(policy["filters"]) == len(service.filters_service().list())
    wanted = [policy.name for policy in policies if policy.name.startswith("vm_")]
    assert wanted
    assert names(results["policies by name"]["ovirt_scheduling_policies"]) == wanted
    assert names(results["policies by id"]["ovirt_scheduling_policies"]) == [policies[1].name]


def test_log_in_and_out(engine: str, folder: Path) -> None:
    results = play("log_out.yml", engine, folder)
    assert results["use the spent token"]["failed"]
    assert results["log in with a wrong password"]["failed"]
    assert "Cannot authenticate user" in results["log in with a wrong password"]["msg"]


def test_vms(engine: str, folder: Path) -> None:
    results = play("vm.yml", engine, folder)

    def vm(task: str) -> etree._Element | None:
        return shown(results, task, "spare")

    assert changes(results, "start", "start again") == {"start": True, "start again": False}
    assert text(vm("read after starting"), "status") == "up"
    assert ids(vm("read after starting"), "host") == {"host1"}

    assert results["migrate to a host"]["changed"]
    assert ids(vm("read after migrating to a host"), "host") == {"host2"}
    assert results["migrate anywhere"]["changed"]
    assert ids(vm("read after migrating anywhere"), "host") == {"host1"}, "it was the only other one"

    assert changes(results, "prefer hosts", "prefer hosts again") == {
        "prefer hosts": True,
        "prefer hosts again": False,
    }
    preferring = vm("read after preferring hosts")
    assert text(preferring, "description") == "prefers alpha"
    assert text(preferring, "high_availability/enabled") == "true"
    assert text(preferring, "placement_policy/affinity") == "migratable"
    assert ids(preferring, "placement_policy/hosts/host") == {"host1"}

    assert changes(results, "pin", "pin again") == {"pin": True, "pin again": False}
    assert text(vm("read after pinning"), "placement_policy/affinity") == "pinned"
    assert ids(vm("read after pinning"), "placement_policy/hosts/host") == {"host1", "host2"}
    assert text(vm("read after pinning"), "description") == "prefers alpha", "what is not given stays"
    assert "not in the same cluster" in results["pin to a host of another cluster"]["msg"]
    assert results["migrate what is pinned"]["failed"]

    assert changes(results, "stop", "stop again") == {"stop": True, "stop again": False}
    assert text(vm("read after stopping"), "status") == "down"
    assert ids(vm("read after stopping"), "host") == set()
