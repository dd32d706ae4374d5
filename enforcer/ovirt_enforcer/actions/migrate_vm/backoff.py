"""What the history holds back: the engine has refused it, or somebody else has undone it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ovirt_enforcer.actions.migrate_vm import flapping, refusals
from ovirt_enforcer.actions.migrate_vm.flapping import Undone
from ovirt_enforcer.actions.migrate_vm.origin import Origins
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.store.intents import Intent

#: How far back the history must go.
REACH_SECONDS: Final = max(refusals.REACH_SECONDS, flapping.REACH_SECONDS)


@dataclass(frozen=True)
class Backoff:
    """VMs and targets that are left alone; `history` has the migrations that have ended, the oldest first."""

    settings: EnforcerSettings
    snapshot: Snapshot
    history: Sequence[Intent]
    origins: Origins

    @cached_property
    def undone(self) -> Mapping[str, Undone]:
        """VMs that somebody else moves away from where we move them. Raises what `Origins` raises."""
        seconds = self.settings.circle_seconds
        return flapping.undone(self.snapshot, self.history, seconds, self._undone_after)

    @cached_property
    def left_out(self) -> Mapping[tuple[str, str], str]:
        """Hosts that VMs are not to be sent to, with the reason, by VM and host id."""
        return {
            **flapping.left_behind(self.snapshot, self.history, self.settings.circle_seconds),
            **refusals.left_out(self.snapshot, self.history, self.settings.refusal_seconds),
        }

    @cached_property
    def frozen(self) -> Mapping[str, str]:
        """VMs that are not to be moved at all, with the reason, by VM id."""
        return {
            **{vm: undone.reason(self.snapshot) for vm, undone in self.undone.items()},
            **refusals.waiting(self.snapshot, self.history, self.settings.refusal_seconds),
        }

    def left_out_of(self, cluster: str) -> dict[tuple[str, str], str]:
        """The same as `left_out` of the VMs of one cluster."""
        vms = {vm.id for vm in self.snapshot.vms if vm.cluster == cluster}
        return {(vm, host): reason for (vm, host), reason in self.left_out.items() if vm in vms}

    def seconds_left(self, cluster: str) -> float:
        """How long until the first of these is over in a cluster; infinite without any."""
        history = [intent for intent in self.history if intent.cluster == cluster]
        return min(
            refusals.seconds_left(history, self.settings.refusal_seconds),
            flapping.seconds_left(history, self.settings.circle_seconds),
            *(one.left_seconds for one in self.undone.values() if one.intent.cluster == cluster),
        )

    def _undone_after(self, intent: Intent) -> float:
        return self.origins.undone_after(intent, self.snapshot.vm_by_id[intent.vm].host)
