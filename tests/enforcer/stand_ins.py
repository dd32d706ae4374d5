"""What stands for parts of an enforcer: plans made at once, and what the store shows of a leader."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ovirt_enforcer.planners import Call, PlannerProcesses, PlanQuestion, plan_of
from ovirt_enforcer.settings import EnforcerSettings, recorded_settings
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_placement.store.enforcer.leader import EnforcerSettingsStore, LeaseStore

#: In seconds; the clock of such a test stands still meanwhile, however slow the machine is.
_LONG = 600.0


class PlannersHere(PlannerProcesses):
    """Plans are there as soon as they are asked for."""

    def start(self, snapshot: Snapshot, question: PlanQuestion) -> Call[Plan]:
        return _Made(plan_of(snapshot, replace(question, deadline=_LONG), simulation_seconds=_LONG))


class _Made(Call[Plan]):
    def __init__(self, plan: Plan) -> None:
        super().__init__(lambda _: plan, b"", (), _LONG)
        self._plan = plan

    def over(self) -> bool:
        return True

    def result(self) -> Plan:
        return self._plan


def lead(folder: Path, settings: EnforcerSettings) -> None:
    """Take the lease in this folder's store, for longer than any test, and write down the settings."""
    url = f"sqlite:///{folder}/store.db"
    with (
        closing(LeaseStore(url, engine="default", patience_seconds=5)) as leases,
        closing(EnforcerSettingsStore(url, engine="default", patience_seconds=5)) as store,
    ):
        epoch = leases.take_lease("one", 600.0)
        assert epoch is not None
        store.record(epoch, recorded_settings(settings))
