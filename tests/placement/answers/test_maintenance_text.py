"""What a plan of a maintenance says of what somebody may relax."""

from __future__ import annotations

from ovirt_placement.answers.plans.maintenance import maintenance_record, maintenance_text
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.planning.maintenance.site import MaintenanceOptions
from ovirt_placement.planning.plan import Deadline
from tests.builders import host, snapshot, vm

STATE = snapshot(host("alpha"), host("beta"), vm("Db", "alpha"))


def test_who_is_held_may_be_waited_for_and_need_not_be_stopped() -> None:
    options = MaintenanceOptions(frozen={"Db": "it came to alpha less than 120 s ago"})
    plan = plan_maintenance(STATE, ["alpha"], options, Deadline.after(30))
    assert [*maintenance_text(maintenance_record(plan, STATE))][-3:] == [
        "  No round for alpha:",
        "    - Db stays where it is: it came to alpha less than 120 s ago",
        "  Once Db may be migrated, or with --stop Db, there is a round for alpha as well.",
    ]
