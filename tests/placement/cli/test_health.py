"""`status`, also as `ovirt-enforcer status`: health by a real store, and the same from both commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.store.enforcer.intents import IntendedMigration, Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove, PauseStore
from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.documents import plain
from tests.plugins.published import Publisher

SAFE = snapshot(
    cluster("c1", name="blue", ha_reservation=True),
    host("h1", cluster="c1"),
    host("h2", cluster="c1"),
    vm("v1", "h1", cluster="c1", ha=True),
)
UNSAFE = snapshot(
    cluster("c1", name="blue", ha_reservation=True),
    host("h1", cluster="c1"),
    host("h2", cluster="c1", free_mb=10),
    vm("v1", "h1", cluster="c1", ha=True),
)


@dataclass
class Asking:
    """What is published, a store, and the commands."""

    publisher: Publisher
    url: str
    capsys: pytest.CaptureFixture[str]

    def mode(self, mode: str) -> None:
        file = self.publisher.config
        file.write_text(f'{file.read_text()}\n[enforcer]\nmode = "{mode}"\n')

    def data(self, status: int) -> Any:
        assert main(["status", "--json", "--config", str(self.publisher.config)]) == status
        return plain(self.capsys.readouterr().out)

    def text(self, status: int) -> str:
        assert main(["status", "--config", str(self.publisher.config)]) == status
        return self.capsys.readouterr().out


@pytest.fixture
def asking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asking:
    publisher = Publisher(tmp_path)
    publisher.publish(SAFE)
    url = f"sqlite:///{tmp_path}/store.db"
    assert f'url = "{url}"' in publisher.config.read_text()
    return Asking(publisher, url, capsys)


def test_it_is_healthy_where_rules_and_reservation_hold(asking: Asking) -> None:
    found = asking.data(0)
    assert (found["health"], found["reasons"]) == ("healthy", [])
    ha = [(one["ha_reservation"], one["ha_safe"], one["failures_survived"]) for one in found["clusters"]]
    assert ha == [(True, True, 1)]
    assert asking.text(0).startswith("Healthy.\nEnforcer: mode observe, no enforcer runs.\n")


def test_a_lost_reservation_is_unhealthy(asking: Asking) -> None:
    asking.publisher.publish(UNSAFE)
    (numbers,) = asking.data(1)["clusters"]
    assert (numbers["ha_safe"], numbers["failures_survived"]) == (False, 0)
    assert asking.data(1)["reasons"] == [
        "cluster blue: HA VMs would not all restart (ovirt-placement ha-check)"
    ]
    assert asking.text(1).rstrip().endswith("unsafe")


def test_an_enforcer_that_is_to_act_and_does_not_run(asking: Asking) -> None:
    asking.mode("enforce")
    assert asking.data(3)["reasons"] == ["no enforcer runs"]
    LeaseStore(asking.url, engine="default").take_lease("host-a:17", 60.0)
    found = asking.data(0)["enforcer"]
    assert (found["mode"], found["leader"], found["epoch"]) == ("enforce", "host-a:17", 1)
    assert "Enforcer: mode enforce, led by host-a:17 (epoch 1).\n" in asking.text(0)


def test_what_is_paused_or_waits_and_what_failed(asking: Asking) -> None:
    PauseStore(asking.url, engine="default").pause(
        "c1", cluster_name="blue", reason="upgrade", set_by="root", seconds=None
    )
    move = ApprovedMove(("v1",), ("h1",), "h2")
    ApprovalStore(asking.url, engine="default").offer("c1", "abc", (move,), "a plan")
    store = Store(asking.url, engine="default")
    failing, going = (
        IntendedMigration(vm="v1", cluster="c1", source="h1", target="h2", correlation_id=word)
        for word in ("x", "y")
    )
    failed = store.prepare([failing])[0].id
    store.accept(failed)
    store.fail(failed, "no room", None)
    store.prepare([going])
    found = asking.data(3)
    assert found["reasons"] == [
        "migrations are paused",
        "a plan waits for approval",
        "1 migration failed in the last 24 hours",
    ]
    text = asking.text(3)
    assert "Paused: root paused cluster blue at " in text
    assert "Plan abc of cluster blue waits for approval since " in text
    assert "Migrations: 1 under way; in the last 24 hours 0 done, 1 failed, 0 refused.\n" in text
    assert "Last failed: v1 to h2 at " in text


def test_a_store_that_does_not_answer(asking: Asking) -> None:
    asking.mode("approve")
    file = asking.publisher.config
    file.write_text(file.read_text().replace(asking.url, "postgresql://127.0.0.1:1/none"))
    found = asking.data(3)
    assert found["reasons"] == ["the enforcer's store does not answer"]
    assert found["enforcer"]["error"]
