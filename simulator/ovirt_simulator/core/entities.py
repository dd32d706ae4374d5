"""What the engine's database holds: the records of the state file, with what only an engine adds to them.

Every record is immutable; a change puts another one in its place. So the reader of a record may keep it
without a lock. Records that the state file knows too are the model's own types with further fields.
"""

import uuid
from datetime import datetime
from enum import StrEnum

import msgspec

from ovirt_placement import model

#: The template that every engine has.
BLANK_TEMPLATE = "00000000-0000-0000-0000-000000000000"
#: Ids of what the state file names without an id (tags, units, policies) are made from this and the name.
NAMESPACE = uuid.UUID("7d6a4f1c-5a0e-4b8e-9d2a-3f5f0c1b8e11")


def stable_id(kind: str, name: str) -> str:
    """Give the id that a thing of this kind and name has in every run."""
    return str(uuid.uuid5(NAMESPACE, f"{kind}/{name}"))


def user_id(name: str) -> str:
    """Give the id of the user of this name, name@profile."""
    return stable_id("user", name)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable record that the state file does not hold."""


class DataCenter(model.DataCenter, frozen=True):
    status: str = "up"
    description: str = ""


class Cluster(model.Cluster, frozen=True):
    description: str = ""
    #: The id of the scheduling policy; what it enables stands there, not in `scheduling_policy`.
    policy_id: str = ""
    #: While `upgrade_mode`: how far it is, in percent.
    upgrade_percent: int = 0


class Host(model.Host, frozen=True):
    """`free_mb` is what VMs there and on their way there leave over."""

    #: The engine's max_scheduling_memory, where it lags behind that.
    reported_mb: int | None = None
    address: str = "127.0.0.1"
    #: Since when its CPUs have been used more than the policy likes, or less (cpuOverCommitTimeStamp).
    overloaded_since: datetime | None = None
    #: Whether there are updates that the next look for some finds, and whether some were found.
    updates_offered: bool = False
    update_available: bool = False

    def as_reported(self) -> "Host":
        """The host as the engine's own units see it."""
        late = self.reported_mb not in (None, self.free_mb)
        return msgspec.structs.replace(self, free_mb=self.reported_mb) if late else self


class Vm(model.Vm, frozen=True):
    """`status` and `host` are what the REST API shows; `migrating_to` is never shown there."""

    description: str = ""
    #: Since when it runs.
    started: datetime | None = None
    #: While migrating: the source has given it away (the engine's MigratingTo, else MigratingFrom).
    handed_over: bool = False

    @property
    def sockets(self) -> int:
        if self.cpu_pinning != "none":
            return self.cpu_sockets
        return max(1, self.vcpus // self.threads_per_core)

    @property
    def affinity(self) -> str:
        """The REST API's placement_policy.affinity: migratable, user_migratable or pinned.

        The state file knows only migratable or not; of it, what names the hosts it is bound to is pinned.
        """
        if self.migratable:
            return "migratable"
        return "pinned" if self.pinned_hosts else "user_migratable"

    @property
    def runs(self) -> bool:
        """Whether a host holds it: the engine's run_on_vds is set."""
        return self.host is not None

    @property
    def engine_status(self) -> str:
        """The status as searches spell it: Up, MigratingFrom, PoweringUp ..."""
        if self.status == "migrating":
            return "MigratingTo" if self.handed_over else "MigratingFrom"
        return "".join(word.capitalize() for word in self.status.split("_"))


class AffinityGroup(model.AffinityGroup, frozen=True):
    description: str = ""


AffinityLabel = model.AffinityLabel


class Tag(Record, frozen=True):
    id: str
    name: str
    description: str | None = None


class UnitType(StrEnum):
    """What a policy unit does, in the REST API's words."""

    FILTER = "filter"
    WEIGHT = "weight"
    LOAD_BALANCING = "load_balancing"


class PolicyUnit(Record, frozen=True):
    """A scheduling policy unit; external ones come from `discover` and keep their id for ever."""

    id: str
    name: str
    type: UnitType
    internal: bool
    enabled: bool = True
    description: str = ""
    #: Regular expression by parameter name.
    properties: dict[str, str] = {}


class PolicyEntry(Record, frozen=True):
    """A unit in a policy."""

    #: The id of the unit, and of this entry.
    unit: str
    #: Of a filter: -1 runs first, 1 last, 0 anywhere.
    position: int = 0
    #: Of a weight.
    factor: int = 1


class SchedulingPolicy(Record, frozen=True):
    id: str
    name: str
    description: str = ""
    locked: bool = False
    default: bool = False
    filters: tuple[PolicyEntry, ...] = ()
    weights: tuple[PolicyEntry, ...] = ()
    #: The id of the load balancing unit; None ends the engine's load balancing.
    balance: str | None = None
    properties: dict[str, str] = {}

    @property
    def balances(self) -> tuple[PolicyEntry, ...]:
        """The balance as the REST API has it: a list of one, or of none."""
        return () if self.balance is None else (PolicyEntry(unit=self.balance),)


class Reference(Record, frozen=True):
    """What an event speaks of, with the name it had then; either may be unknown, but not both."""

    id: str | None = None
    name: str | None = None


class Event(Record, frozen=True):
    """An entry of the audit log. `visible` is when a reader can first see it: later than `time` at times."""

    id: int
    code: int
    #: normal, warning, error or alert.
    severity: str
    time: datetime
    visible: datetime
    description: str
    correlation_id: str | None = None
    origin: str = "oVirt"
    custom_id: int = -1
    user: Reference | None = None
    vm: Reference | None = None
    host: Reference | None = None
    cluster: Reference | None = None
    data_center: Reference | None = None
    template: Reference | None = None


class Job(Record, frozen=True):
    id: str
    description: str
    #: started, finished, failed or aborted.
    status: str
    started: datetime
    ended: datetime | None = None
    correlation_id: str | None = None


class Statistic(msgspec.Struct, frozen=True):
    """One measured value as the engine knows it; the REST face rounds decimals to two digits."""

    name: str
    value: int | float
    unit: str = "percent"


class Caller(Record, frozen=True):
    """Who asks for a command, and the correlation id that its events and job carry."""

    user: str = "admin@internal-authz"
    correlation_id: str | None = None

    @property
    def reference(self) -> Reference:
        """What events have of it: the id, which the engine itself has none of, and the name."""
        if self.user == SYSTEM.user:
            return Reference(name=self.user)
        return Reference(id=user_id(self.user.removesuffix("-authz")), name=self.user)


#: Who asks unless someone else is named.
ADMIN = Caller()
#: Who acts when the engine acts by itself.
SYSTEM = Caller(user="SYSTEM")


def reference(record: Vm | Host | Cluster | DataCenter | None) -> Reference | None:
    return None if record is None else Reference(id=record.id, name=record.name)


def template_of(vm: Vm) -> Reference:
    """Give the template that a VM was made of; the state file knows no names of templates."""
    return Reference(id=vm.template) if vm.template else Reference(id=BLANK_TEMPLATE, name="Blank")


# -- Roles and permissions, and the engine's predefined roles that matter to placement. Source: the engine's
# packaging/dbscripts/data/00500_insert_roles.sql and 00700_insert_roles_groups.sql; of the permits those that
# anything here asks for.
class Role(Record, frozen=True):
    id: str
    name: str
    description: str = ""
    administrative: bool = False
    #: The names of what it permits.
    permits: tuple[str, ...] = ()


class Permission(Record, frozen=True):
    """What a user or group may do with one VM, with a cluster and all that is in it, or with all."""

    id: str
    #: The id of the role.
    role: str
    #: The id of the user or group that has it.
    holder: str
    is_group: bool = False
    #: The id of the VM or cluster that it is on; without either it is on the whole system.
    vm: str | None = None
    cluster: str | None = None


_POWER = "run_vm stop_vm reboot_vm"
_OF_CLUSTERS = (
    f"login {_POWER} edit_vm_properties migrate_vm manipulate_host edit_host_configuration"
    " edit_cluster_configuration manipulate_affinity_groups manipulate_permissions audit_log_management"
)
_OF_STORAGE = f"{_OF_CLUSTERS} edit_storage_pool_configuration"
# fmt: off
_ALL = tuple(
    Role(id=identity, name=name, administrative=administrative, permits=tuple(permits.split()))
    for identity, name, administrative, permits in (
        ("00000000-0000-0000-0000-000000000001", "SuperUser", True,
         f"{_OF_STORAGE} reset_vm tag_management inject_external_events"),
        ("00000000-0000-0000-0001-000000000001", "UserRole", False, f"login {_POWER}"),
        ("def00001-0000-0000-0000-def000000001", "ClusterAdmin", True, _OF_CLUSTERS),
        ("def00002-0000-0000-0000-def000000002", "DataCenterAdmin", True, _OF_STORAGE),
        ("def00004-0000-0000-0000-def000000004", "HostAdmin", True,
         "login manipulate_host edit_host_configuration audit_log_management"),
        ("def00006-0000-0000-0000-def000000006", "UserVmManager", False,
         f"login {_POWER} edit_vm_properties"),
        ("def0000c-0000-0000-0000-def000000000", "ExternalEventsCreator", False, "inject_external_events"),
        ("def0000c-0000-0000-0000-def00000000c", "ReadOnlyAdmin", True, "login"),
    )
)
# fmt: on
ROLES = {role.id: role for role in _ALL}
BY_NAME = {role.name: role for role in _ALL}
#: Those that make a person the user of a VM.
USER_ROLE, USER_VM_MANAGER = BY_NAME["UserRole"], BY_NAME["UserVmManager"]
