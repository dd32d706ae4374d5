"""Two engines at a glance: the script asks each of them, and the queries name metrics that there are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ovirt_enforcer.service.metrics import EnforcerMetrics, HaMetrics
from ovirt_placement.model import AffinityRule
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import APART, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.docs.recipes.page import FOLDER, section, shown
from tests.scenarios.stage import START

TITLE = "Two engines at a glance"


@contextmanager
def engines(folder: Path, rules: dict[str, AffinityRule]) -> Iterator[None]:
    """An engine of each name, whose two VMs run on two hosts and have this rule; their configurations."""
    servers = []
    for name, rule in rules.items():
        state = snapshot(
            cluster("c", name=f"{name}-1"),
            *(host(one, cluster="c") for one in ("node1", "node2")),
            vm("db1", "node1", cluster="c"),
            vm("db2", "node2", cluster="c"),
            group("pair", rule, "db1 db2", cluster="c"),
        )
        server = serve(Engine.from_snapshot(state, clock=START))
        servers.append(server)
        (folder / name).mkdir()
        made = write_configuration(folder / name, server.api_url, engine=f'name = "{name}"')
        (folder / f"{name}.toml").write_text(made.read_text())
    try:
        yield
    finally:
        for server in servers:
            server.close()


def ask(folder: Path, *question: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", FOLDER / "all-engines.sh", *question],
        env={**os.environ, "PATH": path, "OVIRT_PLACEMENT_CONFIGURATIONS": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.system
def test_each_engine_answers_and_one_that_is_not_well_is_the_exit_status(tmp_path: Path) -> None:
    ((command, expected),) = shown(TITLE)
    *_, script, question = command.split()
    assert Path(script) == Path("/usr/share/doc/ovirt-placement/docs/recipes/all-engines.sh")
    with engines(tmp_path, {"east": APART, "west": TOGETHER}):
        asked = ask(tmp_path, question)
        (tmp_path / "west.toml").unlink()
        alone = ask(tmp_path, question)
    assert asked.stdout.splitlines() == expected.splitlines(), asked.stderr
    assert (asked.returncode, alone.returncode) == (1, 0)


def test_the_queries_ask_for_metrics_with_their_labels() -> None:
    metrics = EnforcerMetrics(engine="east")
    HaMetrics(metrics)
    known = {}
    for family in metrics.registry.collect():
        total = "_total" if family.type == "counter" else ""
        known[f"{family.name}{total}"] = family
    asked = set(re.findall(r"ovirt_placement_enforcer_\w+", section(TITLE)))
    assert len(asked) == 4
    assert asked <= known.keys()
    assert "result" in metrics.migrations._labelnames
