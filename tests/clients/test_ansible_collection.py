"""What ovirt.ovirt has besides its modules: the inventory plugin, and the role that upgrades a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import ovirtsdk4
import pytest
import requests

from tests.paths import CHECKOUT

pytestmark = pytest.mark.nightly

FILES = CHECKOUT / "tests" / "clients" / "ansible"


def run(command: str, *words: str, folder: Path, engine: str) -> str:
    """Run a command of Ansible's to its end, with nothing of the user's own settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment = inherited | {
        "HOME": str(folder),
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "LC_ALL": "C.UTF-8",
        "OVIRT_URL": engine,
        "OVIRT_USERNAME": "admin@internal",
        "OVIRT_PASSWORD": "password",
        "OVIRT_CAFILE": str(folder / "ca.pem"),
    }
    program = str(Path(sys.executable).with_name(command))
    done = subprocess.run([program, *words], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-10_000:]
    return done.stdout


def test_the_inventory_plugin(engine: str, folder: Path) -> None:
    words = ("--inventory", str(FILES / "ovirt.yml"), "--list")
    inventory = json.loads(run("ansible-inventory", *words, folder=folder, engine=engine))
    assert inventory["cluster_Default"]["hosts"] == ["idle", "web"]
    assert inventory["tag_front"]["hosts"] == ["web"]
    assert inventory["apart"]["hosts"] == ["idle", "web"]
    web = inventory["_meta"]["hostvars"]["web"]
    assert (web["status"], web["host"], web["ansible_host"]) == ("up", "alpha", "web")
    assert (web["affinity_labels"], web["affinity_groups"]) == (["ssd"], ["apart"])
    assert web["statistics"]["memory.installed"] == 1024**3


def test_the_inventory_plugin_searches(engine: str, folder: Path) -> None:
    words = ("--inventory", str(FILES / "search.ovirt.yml"), "--list")
    inventory = json.loads(run("ansible-inventory", *words, folder=folder, engine=engine))
    assert list(inventory["_meta"]["hostvars"]) == ["web"]
    assert inventory["label_ssd"]["hosts"] == inventory["alpha"]["hosts"] == ["web"]
    assert inventory["_meta"]["hostvars"]["web"]["ansible_host"] == "web"


def test_the_role_cluster_upgrade(engine: str, folder: Path) -> None:
    """Each host has updates, so each is drained, upgraded and rebooted, one after the other."""
    authority = str(folder / "ca.pem")
    for host_id in ("host1", "host2"):
        offering = engine.replace("/ovirt-engine/api", f"/simulator/hosts/{host_id}/updates")
        requests.post(offering, verify=authority).raise_for_status()
    given = json.dumps({"engine": engine, "authority": str(folder / "ca.pem")})
    words = ("--inventory=localhost,", f"--extra-vars={given}", str(FILES / "cluster_upgrade.yml"))
    run("ansible-playbook", *words, folder=folder, engine=engine)
    with ovirtsdk4.Connection(
        engine, "admin@internal", "password", ca_file=str(folder / "ca.pem")
    ) as connection:
        system = connection.system_service()
        cluster = system.clusters_service().cluster_service("cluster1").get()
        policy = connection.follow_link(cluster.scheduling_policy)
        assert (cluster.upgrade_in_progress, policy.name) == (False, "none")
        events = system.events_service().list()
        reported = [event.description for event in events if event.origin == "cluster_upgrade"]
        assert reported[0].startswith("Cluster upgrade progress: 100%")
        assert "Upgrade of cluster Default finished successfully." in reported
        codes = [event.code for event in reversed(events)]
        assert {892, 896, 894, 884, 885, 843, 11000, 67, 63} <= set(codes)
        assert [code for code in codes if code in (840, 888)] == [840, 888] * 2
        assert [host.status.value for host in system.hosts_service().list()] == ["up", "up"]
        assert [vm.status.value for vm in system.vms_service().list()] == ["down", "up"]
        (job,) = [job for job in system.jobs_service().list() if job.external]
        assert job.status == ovirtsdk4.types.JobStatus.FINISHED
