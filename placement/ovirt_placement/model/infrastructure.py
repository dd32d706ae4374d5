"""Data centers, clusters, hosts and networks, as the engine reports them."""

from __future__ import annotations

from ovirt_placement.model.record import Struct


class DataCenter(Struct, frozen=True):
    id: str
    name: str
    local_storage: bool = False


class SchedulingPolicy(Struct, frozen=True):
    """The external units that a cluster's scheduling policy enables, by name; the balance, whosever it is."""

    filters: tuple[str, ...] = ()
    weights: dict[str, int] = {}
    balance: str | None = None
    #: The engine's own filters that can be taken out of a policy, as far as they are known to be in it.
    engine_filters: tuple[str, ...] = ()
    #: Ids of its weights by the names that they have in `weights` and in the cluster's `policy`: they decide
    #: in which order the engine comes upon hosts that are equally good.
    unit_ids: dict[str, str] = {}
    #: External units in the policy that the engine has disabled, and so asks no more.
    disabled: tuple[str, ...] = ()


class Cluster(Struct, frozen=True):
    id: str
    name: str
    ha_reservation: bool
    data_center: str | None = None
    compatibility: str = "4.7"
    count_threads_as_cores: bool = False
    upgrade_mode: bool = False
    #: The correlation id of who began the upgrade that is under way, or the last one.
    upgrade_correlation_id: str | None = None
    #: Factors of the engine's own weight units, by name.
    policy: dict[str, int] = {}
    memory_overcommit_percent: int = 100
    cpu_overcommit_percent: int = 100
    #: How many failed hosts the highly available VMs must survive.
    ha_failures: int = 1
    scheduling_properties: dict[str, str] = {}
    scheduling_policy: SchedulingPolicy | None = None


class Host(Struct, frozen=True):
    id: str
    name: str
    cluster: str
    #: The REST API's word: up, maintenance, non_responsive ...
    status: str
    memory_mb: int
    #: What the scheduler may still hand out; memory of pending VMs is already deducted.
    free_mb: int
    #: Used, 0 to 100; None where there are no statistics, or where they were not read.
    cpu_percent: float | None
    cores: int
    threads: int | None = None
    sockets: int = 1
    #: Physically free, and free in swap; None where it is not known.
    memory_free_mb: int | None = None
    swap_free_mb: int | None = None
    #: Huge pages that are free, by their size in KiB.
    free_huge_pages: dict[int, int] = {}
    #: How many processes ran or waited for a CPU, on average over 5 minutes; None where it is not known.
    load_average_5m: float | None = None
    #: Whether it manages the storage of its data center, or is about to: the engine counts that as some load.
    spm: bool = False
    #: A dedicated failover host.
    failover: bool = False
    tags: tuple[str, ...] = ()
    #: Whether its statistics were read: what is None of them then, the engine does not know either.
    measured: bool = False
    #: Whether the engine reported more free memory than the VMs there leave: it has not counted them all yet.
    memory_uncounted: bool = False

    @property
    def up(self) -> bool:
        return self.status == "up"


class Network(Struct, frozen=True):
    id: str
    name: str


class VnicProfile(Struct, frozen=True):
    id: str
    name: str
    network: str
