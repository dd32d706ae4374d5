"""The modules of ovirt.ovirt that concern placement, unmodified, against a simulated engine."""

import contextlib
import importlib
import io
import json
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from ansible.module_utils import basic

from tests.enforcer.launching import simulator
from tests.simulator.http.world import WORLD

pytestmark = pytest.mark.nightly

_MODULES = "ansible_collections.ovirt.ovirt.plugins.modules"


@contextlib.contextmanager
def impatient() -> Iterator[None]:
    """Let modules ask again at once for what they wait for."""
    sleep = time.sleep
    with mock.patch("time.sleep", lambda seconds: sleep(min(seconds, 0.05))):
        yield


def run(module: str, engine: str, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
    """Run a module with these arguments, in check mode or for real; gives what it returns."""
    auth = {"url": engine, "username": "admin@internal", "password": "password"}
    given = {"auth": auth, "_ansible_check_mode": check, **arguments}
    printed = io.StringIO()
    with (
        mock.patch.object(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": given}).encode()),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        importlib.import_module(f"{_MODULES}.{module}").main()
    returned: dict[str, Any] = json.loads(printed.getvalue())
    return returned


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with simulator(tmp_path_factory.mktemp("modules"), WORLD, time_scale=100) as url, impatient():
        yield url


def done(engine: str, module: str, **arguments: Any) -> dict[str, Any]:
    """What a module returns, which must not have failed."""
    returned = run(module, engine, **arguments)
    assert not returned.get("failed"), returned["msg"]
    return returned


def changes(engine: str, module: str, **arguments: Any) -> list[bool]:
    """Whether a module changes something: in check mode, for real, and once more."""
    return [bool(done(engine, module, check=check, **arguments)["changed"]) for check in (True, False, False)]


def test_affinity_groups(engine: str) -> None:
    group = {"name": "ours", "cluster": "Default"}
    wanted = {"vms": ["idle", "spare"], "vm_rule": "negative", "vm_enforcing": True, "hosts": ["alpha"]}
    assert changes(engine, "ovirt_affinity_group", **group, **wanted) == [True, True, False]
    assert changes(engine, "ovirt_affinity_group", **group, vms=["idle"]) == [True, True, False]
    assert changes(engine, "ovirt_affinity_group", **group, state="absent") == [True, True, False]


def test_affinity_labels(engine: str) -> None:
    label = {"name": "ours", "cluster": "Default"}
    members = {"vms": ["idle"], "hosts": ["alpha"]}
    assert changes(engine, "ovirt_affinity_label", **label, **members) == [True, True, False]
    found = done(engine, "ovirt_affinity_label_info", vm="idle")["ovirt_affinity_labels"]
    assert {one["name"] for one in found} == {"backend", "ours"}
    assert changes(engine, "ovirt_affinity_label", **label, state="absent") == [True, True, False]


def test_vms_are_started_migrated_and_stopped(engine: str) -> None:
    """Only for real: in check mode the module waits for a status that never comes."""
    started = [done(engine, "ovirt_vm", name="spare", state="running", timeout=60) for _ in range(2)]
    assert [each["changed"] for each in started] == [True, False]
    (vm,) = done(engine, "ovirt_vm_info", pattern="name=spare")["ovirt_vms"]
    target = {"host1": "beta", "host2": "alpha"}[vm["host"]["id"]]
    assert done(engine, "ovirt_vm", name="spare", migrate=True, host=target, timeout=60)["changed"]
    (moved,) = done(engine, "ovirt_vm_info", pattern="name=spare")["ovirt_vms"]
    assert moved["host"]["id"] != vm["host"]["id"]
    stopped = [done(engine, "ovirt_vm", name="spare", state="stopped", timeout=60) for _ in range(2)]
    assert [each["changed"] for each in stopped] == [True, False]


def test_hosts_go_into_maintenance_and_come_back(engine: str) -> None:
    host = {"name": "gamma", "timeout": 60}
    assert done(engine, "ovirt_host", **host, state="present")["changed"]
    assert done(engine, "ovirt_host", **host, state="maintenance")["changed"]
    assert not done(engine, "ovirt_host", **host, state="maintenance")["changed"]
    (found,) = done(engine, "ovirt_host_info", pattern="name=gamma")["ovirt_hosts"]
    assert found["status"] == "maintenance"


def test_scheduling_policies(engine: str) -> None:
    found = done(engine, "ovirt_scheduling_policy_info", follow=["filters", "balances"])
    policies = {policy["name"]: policy for policy in found["ovirt_scheduling_policies"]}
    assert policies["none"]["locked"]
    assert len(policies["none"]["filters"]) > 10
