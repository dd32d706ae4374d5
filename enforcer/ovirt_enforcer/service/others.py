"""Warns, once each, of VMs that somebody else moves away from where rules or the enforcer want them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ovirt_enforcer.actions.migrate_vm.origin import Origins
from ovirt_enforcer.actions.migrate_vm.restless import Restless
from ovirt_enforcer.service.look import Look
from ovirt_placement.model.amounts import counted
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.plan import Plan
from ovirt_service.saying import Said

_log = logging.getLogger(__name__)


class OthersAtWork:
    """What was said of one cluster. Methods raise what `Origins` raises."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._said = Said()

    def warn_of_undone(self, cluster: str, look: Look, plan: Plan) -> None:
        """Warn of each VM that violates a rule, and that somebody else moves away whenever we move it."""
        breaking = {vm for rule in plan.remaining for vm in rule.vms}
        for vm in sorted(breaking & look.backoff.undone.keys()):
            undone = look.backoff.undone[vm]
            if self._said.is_news(("undone", vm), f"{undone.intent.id}"):
                self._warn(cluster, look, vm, undone.reason(look.snapshot))

    def warn_of_restless(self, cluster: str, look: Look, restless: Mapping[str, Restless]) -> bool:
        """Warn of each VM that somebody else moves to and fro; whether there was any that is news."""
        news = [vm for vm in sorted(restless) if self._said.is_news(("restless", vm), "restless")]
        for vm in news:
            found = restless[vm]
            often = f"{counted(len(found.hosts) - 1, 'time')} within {found.within_seconds:.0f} s"
            reason = f"{found.reason(look.snapshot)}, {often}; its soft rules are not repaired meanwhile"
            self._warn(cluster, look, vm, reason)
        return bool(news)

    def _warn(self, cluster: str, look: Look, vm: str, reason: str) -> None:
        ours = {one.correlation_id.partition("-")[0] for one in look.history if one.vm == vm}
        who = self._origins.who_moved(vm, ours)
        _log.warning("%s: %s: %s: %s", cluster, vm_name(vm, look.snapshot), reason, who)
