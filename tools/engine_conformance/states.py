"""Random small clusters, in the format of the state file, with all that the engine's units look at."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

from ovirt_placement.model import Host, Vm

State = dict[str, Any]

#: What a VM's consoles can take of memory: VGA; one, two or four QXL screens on various operating systems.
_VIDEO_MB = (16, 16, 16, 72, 96, 128, 136, 192)
#: Of the engine's own VM, of which one screen counts.
_VIDEO_OF_THE_ENGINE_MB = (16, 72, 96, 128)
_ON_A_HOST = ("up",) * 8 + ("paused", "powering_up", "migrating", "not_responding", "saving_state")
#: Percent of CPU: whole numbers as the engine has them, many of them equal, and those around thresholds.
_USE = (0, 5, 10, 20, 20, 50, 59, 60, 61, 64, 65, 66, 74, 75, 76, 79, 80, 81, 90, 91, 99, 100)


def random_state(random: Random) -> State:
    """Up to two clusters, six hosts, nine VMs, five groups, two labels and three VMs on their way."""
    state: State = {"clusters": _clusters(random)}
    clusters = [cluster["id"] for cluster in state["clusters"]]
    state["hosts"] = [_host(random, number, clusters) for number in range(random.randint(1, 6))]
    state["vms"] = [_vm(random, number, state) for number in range(random.randint(1, 9))]
    state["affinity_labels"] = [
        _label(random, number, state) for number in range(random.choice((0, 0, 1, 2)))
    ]
    state["affinity_groups"] = [_group(random, number, state) for number in range(random.randint(0, 5))]
    state["pending"] = _pending(random, state)
    return state


def uuid(random: Random, kind: str, number: int) -> str:
    """An id whose halves may be negative to Java, and that may share a bin of a small table with others."""
    first = random.choice(("0", "1", "7", "8", "9", "f")) + f"{random.getrandbits(4):x}" + kind
    last = random.getrandbits(random.choice((8, 48)))
    return f"{first}{random.getrandbits(20):05x}-{number:04x}-4000-{random.choice('089f')}000-{last:012x}"


def signed_halves(name: str) -> tuple[int, int]:
    """The order in which Java compares ids."""
    upper, lower = divmod(UUID(name).int, 1 << 64)
    return upper - (upper >> 63 << 64), lower - (lower >> 63 << 64)


def _clusters(random: Random) -> list[State]:
    return [
        {
            "id": uuid(random, "c", number),
            "name": f"cluster{number}",
            "ha_reservation": random.random() < 0.8,
            "compatibility": random.choice(("4.3", "4.7", "4.7", "4.7")),
            "count_threads_as_cores": random.random() < 0.3,
            "upgrade_mode": random.random() < 0.05,
        }
        for number in range(random.choice((1, 1, 2)))
    ]


def _host(random: Random, number: int, clusters: list[str]) -> State:
    cores = random.choice((1, 2, 2, 4, 4, 8, 16))
    host = {
        "id": uuid(random, "a", number),
        "name": f"host{number}",
        "cluster": random.choice((clusters[0], *clusters)),
        "status": random.choice(("up",) * 8 + ("maintenance", "non_responsive")),
        "memory_mb": 65536,
        "free_mb": random.choice((0, 1, random.randint(2, 4096), random.randint(1000, 2200), 1200, 20000)),
        "cpu_percent": random.choice((None, *_USE, random.randint(0, 100))),
        "cores": cores,
        "threads": random.choice((cores, 2 * cores, 2 * cores)),
    }
    _add(host, Host, measured=True)
    if random.random() < 0.3:
        _add(
            host, Host, memory_free_mb=random.randint(0, 6000), swap_free_mb=random.choice((0, 0, 500, 4096))
        )
    if random.random() < 0.15:
        _add(
            host,
            Host,
            free_huge_pages={"2048": random.choice((0, 3, 512, 600)), "1048576": random.randint(0, 3)},
        )
    if random.random() < 0.15:
        _add(host, Host, spm=True)
    return host


def _vm(random: Random, number: int, state: State) -> State:
    hosts = [host["id"] for host in state["hosts"]]
    on = random.choice((None, *hosts, *hosts))
    pinned = random.sample(hosts, random.randint(1, min(2, len(hosts)))) if random.random() < 0.25 else []
    cluster = next((host["cluster"] for host in state["hosts"] if host["id"] == on), None)
    memory = random.choice((256, 511, 512, 1000, 1024, 1025, 1536, 2048, random.randint(1, 4096)))
    status = random.choice(_ON_A_HOST) if on else random.choice(("down", "down", "down", "suspended"))
    vm = {
        "id": uuid(random, "b", number),
        "name": f"vm{number}",
        "cluster": cluster or random.choice(state["clusters"])["id"],
        "host": on,
        "status": status,
        "memory_mb": memory,
        "guaranteed_mb": random.choice((memory, memory // 2, 1)),
        "usage_mem_percent": random.choice((None, 0, 33, 50, 66, 100)),
        "usage_cpu_percent": random.choice((None, *_USE)),
        "vcpus": random.choice((1, 1, 1, 2, 2, 3, 4, 8)),
        "ha": random.random() < 0.5,
        "migratable": random.random() < 0.8,
        "hosted_engine": number == 0 and random.random() < 0.15,
        "pinned_hosts": pinned,
    }
    video_mb = random.choice(_VIDEO_OF_THE_ENGINE_MB if vm["hosted_engine"] else _VIDEO_MB)
    _add(vm, Vm, io_threads=random.choice((0, 0, 1, 2)), video_mb=video_mb)
    if vm["vcpus"] % 2 == 0 and random.random() < 0.3:
        _add(vm, Vm, threads_per_core=2)
    if random.random() < 0.05:
        most = random.choice((memory, memory + 1, 4 * memory))
        _add(vm, Vm, architecture=random.choice(("ppc64", "ppc64le", "s390x")), max_memory_mb=most)
    if random.random() < 0.1:
        vm["custom_properties"] = {"hugepages": random.choice(("2048", "1048576"))}
    return vm


def _add(to: State, record: type, **fields: Any) -> None:
    """Say what the state file knows how to say."""
    to.update({name: value for name, value in fields.items() if name in record.__struct_fields__})  # type: ignore[attr-defined]


def _label(random: Random, number: int, state: State) -> State:
    return {
        "id": uuid(random, "e", number),
        "name": f"label{number}",
        "vms": _some(random, state["vms"]),
        "hosts": _some(random, state["hosts"]),
        "implicit": random.random() < 0.5,
    }


def _group(random: Random, number: int, state: State) -> State:
    return {
        "id": uuid(random, "d", number),
        "name": f"group{number}",
        "cluster": random.choice((state["clusters"][0], *state["clusters"]))["id"],
        "priority": random.choice((1.0, 1.0, 2.0, 1.00000001, 1.00000005, 0.3, -1.0)),
        "vms_rule": _rule(random),
        "hosts_rule": _rule(random),
        "vms": _some(random, state["vms"]),
        "hosts": _some(random, state["hosts"]) if random.random() < 0.8 else [],
        "vm_labels": _some(random, state["affinity_labels"]),
        "host_labels": _some(random, state["affinity_labels"]),
    }


def _rule(random: Random) -> State:
    return {
        "enabled": random.random() < 0.7,
        "positive": random.random() < 0.5,
        "enforcing": random.random() < 0.5,
    }


def _some(random: Random, among: list[State]) -> list[str]:
    most = min(4, len(among))
    return [one["id"] for one in random.sample(among, random.randint(0, most))]


def _pending(random: Random, state: State) -> list[State]:
    """VMs that start, and VMs that migrate; a VM is on its way to one host at most."""
    ready = [vm for vm in state["vms"] if vm["status"] in ("down", "migrating", "suspended")]
    chosen = random.sample(ready, random.randint(0, min(3, len(ready))))
    hosts = [host["id"] for host in state["hosts"]]
    found = []
    for vm in chosen:
        if vm["status"] == "migrating" and random.random() < 0.5:
            vm["migrating_to"] = random.choice(hosts)
        else:
            found.append({"vm": vm["id"], "host": random.choice(hosts)})
    return found
