"""How long things take in the simulated engine, how badly it behaves, and what goes wrong on demand."""

from typing import TypeVar

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Simulated seconds and probabilities. The defaults are a small engine's on a good day."""

    #: From the accepted start until the VM powers up, and from there until it is up.
    launch_seconds: float = 1.0
    boot_seconds: float = 4.0
    #: From a shutdown until the VM is down, from a stop, and from a suspend until it is suspended.
    shutdown_seconds: float = 5.0
    stop_seconds: float = 1.0
    suspend_seconds: float = 3.0
    #: A migration takes the fixed part and the VM's memory over the bandwidth.
    migration_seconds: float = 2.0
    migration_mib_per_second: float = 1024.0
    #: How long the target has the VM before it reports it up: `migrating` with the target as host.
    hand_over_seconds: float = 0.5
    #: How often a migration without a host is tried again on another one (the engine's 3).
    migration_reruns: int = 3
    cancel_seconds: float = 0.5
    #: How often the engine looks at its hosts, and after what it tries a failed drain or restart again.
    refresh_seconds: float = 3.0
    retry_seconds: float = 30.0
    #: How often it looks at highly available VMs that went down, and how long in all such a VM waits for
    #: others of a higher priority (the engine's 600).
    restart_round_seconds: float = 1.0
    restart_blocked_seconds: float = 600.0
    #: From a host's crash until the engine sees it, how long it then tries to connect until the host is
    #: non-responsive, and until that is fenced and its VMs are known to be down.
    host_detection_seconds: float = 5.0
    host_connecting_seconds: float = 75.0
    host_fence_seconds: float = 30.0
    host_activation_seconds: float = 3.0
    update_check_seconds: float = 2.0
    #: How long an upgrade installs, and how long a host takes to come up from there.
    host_installation_seconds: float = 10.0
    host_boot_seconds: float = 5.0
    #: For so long the engine waits for a host that it has restarted.
    host_reboot_timeout_seconds: float = 600.0
    #: How much earlier an event may be logged than the state it speaks of shows: up to this, at random.
    state_lag_seconds: float = 0.5
    #: How probably an event shows later than its successors, and by how much at most.
    late_event_probability: float = 0.05
    late_event_seconds: float = 0.5
    #: How often the hosts report what VMs use, and how far the figures wobble around the state file's.
    statistics_seconds: float = 15.0
    statistics_wobble_percent: float = 5.0
    #: How often the engine's own affinity enforcement and load balancing run; None switches them off.
    affinity_enforcement_seconds: float | None = None
    load_balancing_seconds: float | None = None


USUAL = Settings()
#: An engine that reports everything at once and in order: what most tests want.
PROMPT = Settings(
    state_lag_seconds=0.0,
    late_event_probability=0.0,
    statistics_wobble_percent=0.0,
    host_connecting_seconds=0.0,
)


# -- What goes wrong on demand: migrations that fail, hang, crawl or are refused, and upgrades of hosts.


class MigrationFault(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a migration that starts now."""

    #: Fails after its time; the VM stays where it was.
    fail: bool = False
    #: Never ends by itself; cancelling it works.
    hang: bool = False
    #: Takes this many times as long.
    slow: float = 1.0
    #: VDSM refuses it at once: HTTP 400.
    refuse: bool = False


class UpgradeFault(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to an upgrade of a host that is being installed now."""

    #: The installation fails; the host stays, and its status is install_failed.
    fail: bool = False
    #: The host does not come back from its restart until somebody lets it recover.
    stay_away: bool = False


Fault = TypeVar("Fault", MigrationFault, UpgradeFault)


class Faults:
    """The faults to come. Each is used up by the first migration or upgrade that it fits."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str | None, MigrationFault | UpgradeFault]] = []

    def expect(
        self, fault: MigrationFault | UpgradeFault, count: int = 1, identity: str | None = None
    ) -> None:
        """Let the next migrations or upgrades (of this VM or host, if one is named) go wrong."""
        self._waiting.extend([(identity, fault)] * count)

    def clear(self) -> None:
        """Forget all faults that have not come yet."""
        self._waiting.clear()

    def take(self, kind: type[Fault], identity: str) -> Fault:
        """Give what a migration of this VM, or an upgrade of this host, meets; harmless if none waits."""
        for index, (wanted, fault) in enumerate(self._waiting):
            if wanted in (None, identity) and isinstance(fault, kind):
                del self._waiting[index]
                return fault
        return kind()
