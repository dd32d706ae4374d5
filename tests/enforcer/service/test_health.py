"""A probe learns whether the process gets on, and a person who leads."""

from __future__ import annotations

import json
import logging
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.service.health import Health
from ovirt_enforcer.service.leading import Leader
from ovirt_placement.engine.connection.client import EngineAway
from ovirt_placement.inventory import NoSnapshot
from ovirt_placement.store.leases import LeaseStore
from ovirt_service import metrics
from ovirt_service.progress import Progress
from tests.pages import page_named_in, samples


def ask(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_page_alongside_the_metrics(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = 50.0
    caplog.set_level(logging.INFO)
    leases = LeaseStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
    leader = Leader(leases, "me", 600.0)
    progress = Progress(60.0, lambda: now)
    health = Health(progress, leader, lambda: now)
    metrics.serve(metrics.new_registry("part"), "127.0.0.1:0", "metrics", {"/healthz": health.page})
    page = page_named_in(caplog.text)
    url = page.replace("/metrics", "/healthz")

    status, state = ask(url)
    assert status == 200
    assert (state["role"], state["leader"], state["last_cycle_seconds_ago"]) == ("follower", "", None)
    health.cycled()
    assert ask(url)[1]["engine_reachable"] is None  # one that follows asks no engine
    leader.tend()
    now += 2.0
    status, state = ask(url)
    assert (status, state["role"], state["leader"], state["epoch"]) == (200, "leader", "me", 1)
    assert (state["last_cycle_seconds_ago"], state["engine_reachable"]) == (2.0, True)
    health.cycled(EngineAway("the engine is away", request_sent=False))
    status, state = ask(url)
    assert (status, state["engine_reachable"]) == (200, False)
    assert state["last_cycle_error"] == "the engine is away"
    health.cycled(NoSnapshot("nothing is known of the engine"))
    assert ask(url)[1]["engine_reachable"] is False
    now += 60.0
    status, state = ask(url)
    assert (status, state["status"]) == (503, "hangs")
    assert any(name.startswith("process_") for name, *_ in samples(page))
    leases.close()
