"""Reads and writes the cluster state file: the placement state of a whole engine, refused if it cannot be."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, Cluster, Host, Snapshot, Vm
from ovirt_placement.model.infrastructure import (
    HOST_STATUSES,
    LARGEST,
    RESTING_STATUSES,
    RUNNING_STATUSES,
    VM_STATUSES,
    is_priority,
)
from ovirt_placement.model.record import CLASSES, CLUSTER, NODE, SERVER, check_level
from ovirt_service import files
from ovirt_service.decoding import check_unique, complaint, nearest
from ovirt_service.errors import UserError, placed
from ovirt_service.text import unbroken


def _check_keys(snapshot: Snapshot) -> None:
    """Check where keys are set; what is wrong with a key itself stops no placement and is not refused."""
    known: Mapping[str, tuple[str, Collection[str]]] = {
        CLUSTER: ("cluster", snapshot.cluster_by_id),
        SERVER: ("VM", snapshot.vm_by_id),
        NODE: ("host", snapshot.host_by_id),
    }
    first: dict[tuple[str, str, str, str], str] = {}
    for path, key in _listed("placement_keys", snapshot.placement_keys):
        if key.key_class not in CLASSES:
            _refuse(f"{path}.class", f'"{key.key_class}" is not one of {", ".join(CLASSES)}')
        check_level(key.level, f"{path}.level: ")
        kind, ids = known.get(key.level, ("", (key.resource,)))
        if key.resource not in ids:
            _refuse(f"{path}.resource", f'no {kind} "{key.resource}"{nearest(key.resource, ids)}')
        before = first.setdefault((key.level, key.resource, key.key_class, key.name), path)
        if before != path:
            _refuse(f"{path}.name", f'"{key.name}" is set there by {before} already')


#: What the records of each list are called that others refer to, each list after those that it refers to.
_NOUNS = {
    "data_centers": "data center",
    "clusters": "cluster",
    "hosts": "host",
    "networks": "network",
    "vnic_profiles": "vNIC profile",
    "vms": "VM",
    "affinity_labels": "affinity label",
    "affinity_groups": "affinity group",
}
#: By list and field, the list that an id stands in; a field may hold one, none, or several. Members of other
#: clusters are legal: the engine lets them in, and its rules say what they count for.
_REFERENCES: Mapping[str, Mapping[str, str]] = {
    "clusters": {"data_center": "data_centers"},
    "hosts": {"cluster": "clusters"},
    "vms": {"cluster": "clusters", "host": "hosts", "migrating_to": "hosts", "pinned_hosts": "hosts"},
    "affinity_labels": {"vms": "vms", "hosts": "hosts"},
    "affinity_groups": {
        "cluster": "clusters",
        "vms": "vms",
        "hosts": "hosts",
        "vm_labels": "affinity_labels",
        "host_labels": "affinity_labels",
    },
    "vnic_profiles": {"network": "networks"},
    "pending": {"vm": "vms", "host": "hosts"},
    "frozen_keys": {"vm": "vms"},
    "sticky_copies": {"vm": "vms"},
}
#: What has one of these belongs to it, and goes with it.
_OWNERS = frozenset({"cluster", "network"})
#: The least that fields may be, where they are known.
_LEAST: Mapping[str, Mapping[str, int]] = {
    "clusters": {"memory_overcommit_percent": 1, "cpu_overcommit_percent": 1, "ha_failures": 0},
    "hosts": dict.fromkeys(
        ("memory_mb", "free_mb", "cores", "threads", "memory_free_mb", "swap_free_mb", "load_average_5m"), 0
    ),
    "vms": {
        **dict.fromkeys(
            ("memory_mb", "guaranteed_mb", "io_threads", "video_mb", "max_memory_mb", "ha_priority"), 0
        ),
        **dict.fromkeys(("vcpus", "threads_per_core", "cpu_sockets"), 1),
    },
    "pending": {"memory_mb": 0},
}
#: A compatibility version.
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")
_PERCENTS = {"hosts": ("cpu_percent",), "vms": ("usage_mem_percent", "usage_cpu_percent")}


def check(snapshot: Snapshot) -> None:
    """Check every reference and value of a snapshot.

    Raises `UserError` for the first that is wrong, by its path: `vms[3].host: no host "h9"`.
    """
    for name in _NOUNS:
        check_unique(name, "id", getattr(snapshot, name))
    known = {name: frozenset(one.id for one in getattr(snapshot, name)) for name in _NOUNS}
    for name in _REFERENCES:
        for path, record in _listed(name, getattr(snapshot, name)):
            _check_fields(name, path, record, known)
    for path, vm in _listed("vms", snapshot.vms):
        _check_vm(path, vm, known)
    for path, host in _listed("hosts", snapshot.hosts):
        _check_host(path, host)
    for path, cluster in _listed("clusters", snapshot.clusters):
        _check_cluster(path, cluster)
    for path, group in _listed("affinity_groups", snapshot.affinity_groups):
        _check_group(path, group, known)
    for path, draining in _listed("draining_hosts", snapshot.draining_hosts):
        _check_reference(path, "hosts", draining, known)
    _check_keys(snapshot)
    # Members of rules that are not there stop no placement, and are reported elsewhere.
    check_unique("placement_rules", "name", snapshot.placement_rules)


def consistent(snapshot: Snapshot) -> Snapshot:
    """Drop the references to what the snapshot does not hold, and what cannot stand without them.

    So it is one, though put together of several answers: what vanished between two is named by neither.
    """
    lists: dict[str, tuple[Any, ...]] = {}
    known: dict[str, Set[str | None]] = {}
    for name in _NOUNS:
        records = getattr(snapshot, name)
        for field, referred in _REFERENCES.get(name, {}).items():
            records = _referring(records, field, known[referred])
        lists[name], known[name] = records, {None, *(one.id for one in records)}
    profiles = known["vnic_profiles"]
    if not {nic.vnic_profile for vm in lists["vms"] for nic in vm.nics} <= profiles:
        lists["vms"] = tuple(
            replace(vm, nics=_referring(vm.nics, "vnic_profile", profiles)) for vm in lists["vms"]
        )
    return replace(snapshot, **lists)


def _referring(records: tuple[Any, ...], field: str, known: Set[str | None]) -> tuple[Any, ...]:
    """Records whose field names but what is known: as nearly always all do, which sets show much quicker."""
    values = list(map(attrgetter(field), records))
    if values and isinstance(values[0], tuple):
        values = list(chain.from_iterable(values))
    if set(values) <= known:
        return records
    return tuple(left for one in records if (left := _left_of(one, field, known)) is not None)


def _left_of(record: Any, field: str, known: Set[str | None]) -> Any:
    """The record, naming but what is known; None where it cannot stand without."""
    value = getattr(record, field)
    if isinstance(value, tuple):
        left = tuple(one for one in value if one in known)
        return record if left == value else replace(record, **{field: left})
    if value in known:
        return record
    if field in _OWNERS:
        return None
    if field == "host" and record.status in RUNNING_STATUSES:
        record = replace(record, status="unknown")  # its host was removed a moment ago
    return replace(record, **{field: None})


def _listed(name: str, records: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"{name}[{at}]", record) for at, record in enumerate(records))


def _check_fields(name: str, path: str, record: Any, known: Mapping[str, Collection[str]]) -> None:
    for field, referred in _REFERENCES[name].items():
        value = getattr(record, field)
        if isinstance(value, tuple):
            for where, one in _listed(f"{path}.{field}", value):
                _check_reference(where, referred, one, known)
        elif value is not None:
            _check_reference(f"{path}.{field}", referred, value, known)
    for field, least in _LEAST.get(name, {}).items():
        _check_at_least(f"{path}.{field}", getattr(record, field), least)
    for field in _PERCENTS.get(name, ()):
        number = getattr(record, field)
        if number is not None and not 0 <= number <= 100:
            _refuse(f"{path}.{field}", f"{number:g} is not between 0 and 100")


def _check_host(path: str, host: Host) -> None:
    _check_status(path, host.status, HOST_STATUSES)
    for size, count in host.free_huge_pages.items():
        _check_at_least(f"{path}.free_huge_pages", size, 1)
        _check_at_least(f"{path}.free_huge_pages.{size}", count, 0)


def _check_cluster(path: str, cluster: Cluster) -> None:
    if not _VERSION.fullmatch(cluster.compatibility):
        _refuse(f"{path}.compatibility", f'"{cluster.compatibility}" is no version, such as 4.7')
    weights = {} if cluster.scheduling_policy is None else cluster.scheduling_policy.weights
    for where, factors in (("policy", cluster.policy), ("scheduling_policy.weights", weights)):
        for unit, factor in factors.items():
            _check_at_least(f"{path}.{where}.{unit}", factor, 0)


def _check_group(path: str, group: AffinityGroup, known: Mapping[str, Collection[str]]) -> None:
    """A label acts as a group of its id in old clusters, and is named by it in answers."""
    if group.id in known["affinity_labels"]:
        _refuse(f"{path}.id", f'"{group.id}" is the id of an affinity label, too')
    if not is_priority(group.priority):
        _refuse(f"{path}.priority", f"{group.priority:g} is too large")


def _check_vm(path: str, vm: Vm, known: Mapping[str, Collection[str]]) -> None:
    _check_status(path, vm.status, VM_STATUSES)
    if vm.host is None and vm.status in RUNNING_STATUSES:
        _refuse(f"{path}.host", f'a VM with the status "{vm.status}" is on a host; name it')
    if vm.host is not None and vm.status in RESTING_STATUSES:
        _refuse(f"{path}.host", f'a VM with the status "{vm.status}" is on no host; write null')
    if vm.crashed and vm.status != "down":
        _refuse(f"{path}.crashed", f'a VM with the status "{vm.status}" has not crashed')
    check_unique(f"{path}.disks", "id", vm.disks)
    check_unique(f"{path}.nics", "id", vm.nics)
    for where, nic in _listed(f"{path}.nics", vm.nics):
        if nic.vnic_profile is not None:
            _check_reference(f"{where}.vnic_profile", "vnic_profiles", nic.vnic_profile, known)


def _check_reference(path: str, name: str, referred: str, known: Mapping[str, Collection[str]]) -> None:
    if referred not in known[name]:
        _refuse(path, f'no {_NOUNS[name]} "{referred}"')


def _check_status(path: str, status: str, known: Collection[str]) -> None:
    if status not in known:
        _refuse(f"{path}.status", f'no status "{status}"{nearest(status.lower(), known)}')


def _check_at_least(path: str, number: float | None, least: int) -> None:
    if number is not None and not least <= number <= LARGEST:
        _refuse(path, f"{number} is less than {least}" if number < least else f"more than {LARGEST}")


def _refuse(path: str, text: str) -> NoReturn:
    raise UserError(f"{path}: {text}")


FORMAT = 1
#: Ten times as much as ten thousand VMs with all that hangs on them.
_MOST_MIB = 256

#: How a line break may stand within a text of JSON.
_BREAKS = re.compile(
    rb"\\[nrf]|\\u00(?:0[a-d]|1[c-e]|85)|\\u202[89]|\xc2\x85|\xe2\x80[\xa8\xa9]", re.IGNORECASE
)


class _Head(msgspec.Struct):
    """What must be read before anything else: a newer format may have keys that are unknown here."""

    format: int = FORMAT


def load(path: Path) -> Snapshot:
    """Read a state file.

    Raises `UserError` if it cannot be read, is no state file, or holds what cannot be; it names the place.
    """
    content = files.read_named(path, "state file", _MOST_MIB)
    with placed(f"{path}: "):
        return loads(content)


def loads(content: bytes) -> Snapshot:
    """Decode a state file's content; raises `UserError` as `load` does, without the name of the file."""
    if not content.lstrip().startswith(b"{"):
        raise UserError("is no state file (ovirt-placement snapshot makes one)")
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format != FORMAT:
            raise UserError(f"format: this release reads format {FORMAT}, not {head.format}")
        snapshot = _decoded(content)
    except msgspec.ValidationError as error:
        raise UserError(complaint(error, Snapshot)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(_malformed(str(error), content)) from None
    except RecursionError:
        raise UserError("not a state file: nested too deeply") from None
    check(snapshot)
    return snapshot


def dumps(snapshot: Snapshot) -> bytes:
    """Encode a snapshot as a state file, two spaces a level, ready to be read by people.

    What may be left out and has its default value is left out.
    """
    state = {"format": FORMAT, "pending": (), **msgspec.to_builtins(snapshot)}
    return msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n"


def _decoded(content: bytes) -> Snapshot:
    """Decode it; the texts in it are one line each, and so cannot pass for lines of an answer."""
    if not _BREAKS.search(content):
        return msgspec.json.decode(content, type=Snapshot)
    return msgspec.convert(_unbroken(msgspec.json.decode(content)), Snapshot, str_keys=True)


def _unbroken(found: Any) -> Any:
    if isinstance(found, str):
        return unbroken(found)
    if isinstance(found, list):
        return [_unbroken(one) for one in found]
    if isinstance(found, dict):
        return {unbroken(key): _unbroken(value) for key, value in found.items()}
    return found


def _malformed(message: str, content: bytes) -> str:
    """Return the line and column where the JSON is invalid: editors know these, not a count of bytes."""
    at = re.search(r"\(byte (\d+)\)", message)
    if at is None:
        return f"not a JSON object: {message[:1].lower()}{message[1:]}"
    before = content[: int(at[1])]
    line = before.count(b"\n") + 1
    column = len(before) - (before.rfind(b"\n") + 1) + 1
    reason = message[: at.start()].removeprefix("JSON is malformed: ").strip()
    return f"line {line}, column {column}: not JSON: {reason}"
