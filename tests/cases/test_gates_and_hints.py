"""What holds repairs back is said, what was refused is no failure, and hints lead to what helps."""

from __future__ import annotations

from pathlib import Path

from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.answers.status.enforcement import EnforcementRecord
from ovirt_placement.answers.status.health import Health, judge
from ovirt_placement.model.files import state_file
from ovirt_placement.planning.planner import make_plan
from tests.cases.asking import STATES, Ask
from tests.enforcer.gates.judging import gates


def test_an_upgrade_that_was_never_ended_is_why_nothing_is_repaired(ask: Ask) -> None:
    said = ask("ovirt-placement status", "flag-of-an-upgrade")
    assert said.status == 3
    assert "the cluster is being upgraded (role-2024): nothing is migrated until that is over" in said.text
    state = state_file.load(STATES / "flag-of-an-upgrade.json")
    plan = make_plan(state, "c")
    closed = gates(EnforcerSettings(mode=Mode.ENFORCE)).blocked_reason(state, "c", plan.steps[0], plan)
    assert (closed.gate, "role-2024" in str(closed)) == ("cluster_upgrade", True)


def test_a_migration_that_the_engine_refused_makes_nothing_degraded() -> None:
    leads = {"mode": "enforce", "configured_mode": "enforce", "leader": "h-1-x"}
    refused = EnforcementRecord(**leads, migrations_refused=1)  # type: ignore[arg-type]
    assert judge(None, (), (), refused, None) == (Health.HEALTHY, ())
    failed = EnforcementRecord(**leads, migrations_failed=1)  # type: ignore[arg-type]
    assert judge(None, (), (), failed, None)[0] is Health.DEGRADED


def test_the_way_to_restore_a_reservation_helps_as_it_is_said(ask: Ask, tmp_path: Path) -> None:
    checked = ask("ovirt-placement ha-check", "reservation-to-restore")
    assert checked.status == 1
    assert "with [enforcer.ha] repair = true (docs/ha.md):\n  ovirt-enforcer plan" in checked.text
    config = tmp_path / "config.toml"
    config.write_text("[enforcer.ha]\nrepair = true\n")
    planned = ask(f"ovirt-enforcer plan --config {config}", "reservation-to-restore")
    assert planned.text.startswith("Cluster c: 1 migration")
