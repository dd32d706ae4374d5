"""Random small clusters, in the format of the state file, and what is asked about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from random import Random
from typing import Any

from ovirt_placement.model import Snapshot, state_file
from ovirt_simulator.scheduler.weights import guid_order

State = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """`kind` and `request` are as `tools/engine_conformance/java` takes them."""

    kind: str
    state: State
    request: dict[str, Any]

    @cached_property
    def snapshot(self) -> Snapshot:
        return state_file.loads(json.dumps(self.state).encode())

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self.request["candidate_hosts"])

    @property
    def vms(self) -> tuple[str, ...]:
        return tuple(self.request["vms"])

    @property
    def parameters(self) -> Mapping[str, str]:
        """Those of the policy of the cluster that the VMs belong to."""
        cluster = self.snapshot.vm_by_id[self.vms[0]].cluster
        return self.snapshot.cluster_by_id[cluster].scheduling_properties

    def line(self) -> str:
        """As the engine's side reads it; `told` is what the state file has no words for, by host or VM."""
        told = self.request.get("told", {})
        lists = {
            name: [{**one, **told.get(one["id"], {})} for one in self.state[name]]
            for name in ("hosts", "vms")
        }
        return json.dumps({"kind": self.kind, "request": self.request, **self.state, **lists})

    def about(self, state: State) -> Question:
        """The same question about another state."""
        return replace(self, state=state)


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
    host: State = {
        "id": uuid(random, "a", number),
        "name": f"host{number}",
        "cluster": random.choice((clusters[0], *clusters)),
        "status": random.choice(("up",) * 8 + ("maintenance", "non_responsive")),
        "memory_mb": 65536,
        "free_mb": random.choice((0, 1, random.randint(2, 4096), random.randint(1000, 2200), 1200, 20000)),
        "cpu_percent": random.choice((None, *_USE, random.randint(0, 100))),
        "cores": cores,
        "threads": random.choice((cores, 2 * cores, 2 * cores)),
        "measured": True,
    }
    if random.random() < 0.3:
        host.update(memory_free_mb=random.randint(0, 6000), swap_free_mb=random.choice((0, 0, 500, 4096)))
    if random.random() < 0.15:
        pages = {"2048": random.choice((0, 3, 512, 600)), "1048576": random.randint(0, 3)}
        host.update(free_huge_pages=pages)
    if random.random() < 0.15:
        host.update(spm=True)
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
    vm.update(io_threads=random.choice((0, 0, 1, 2)), video_mb=video_mb)
    if vm["vcpus"] % 2 == 0 and random.random() < 0.3:
        vm.update(threads_per_core=2)
    if random.random() < 0.05:
        most = random.choice((memory, memory + 1, 4 * memory))
        vm.update(architecture=random.choice(("ppc64", "ppc64le", "s390x")), max_memory_mb=most)
    if random.random() < 0.1:
        vm["custom_properties"] = {"hugepages": random.choice(("2048", "1048576"))}
    return vm


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


#: What is asked about a state, None where nothing can be.
Asking = Callable[[Random, State], dict[str, Any] | None]


def questions(kind: str, asking: Asking, seed: int, number: int, **request: Any) -> Iterator[Question]:
    """As many questions as wanted, each about a state of its own; the same for the same seed."""
    made = 0
    for each in count():
        if made == number:
            return
        random = Random(f"{seed} {kind} {request} {each}")
        state = random_state(random)
        asked = asking(random, state)
        if asked is not None:
            made += 1
            yield Question(kind, state, {**asked, **request})


def placing(random: Random, state: State) -> dict[str, Any] | None:
    """One VM or a few of one cluster that are not on their way, and hosts of it that are up."""
    busy = {entry["vm"] for entry in state["pending"]}
    free = [vm for vm in state["vms"] if vm["id"] not in busy and "migrating_to" not in vm]
    if not free:
        return None
    first = random.choice(free)
    others = [vm["id"] for vm in free if vm["cluster"] == first["cluster"] and vm is not first]
    more = random.sample(others, min(len(others), random.choice((0, 0, 0, 0, 1, 2))))
    hosts = up_hosts(state, first["cluster"])
    chosen = [host for host in hosts if random.random() < 0.85]
    return {"vms": [first["id"], *more], "candidate_hosts": chosen} if chosen else None


def placing_one(random: Random, state: State) -> dict[str, Any] | None:
    """One VM, under a policy that may scale the weight of HA reservation down."""
    scale = random.choice((None, "1", "3", "10", "100"))
    scaled = {"ScaleDown": scale, "ha_weight_scale_down": scale} if scale else {}
    for cluster in state["clusters"]:
        cluster["scheduling_properties"] = {**scaled, "ha_measure": "vms"}
    asked = placing(random, state)
    return asked and {**asked, "vms": asked["vms"][:1]}


Choices = Sequence[str | None]


def placing_with(**parameters: Choices) -> Asking:
    """The same under a policy with parameters."""

    def asking(random: Random, state: State) -> dict[str, Any] | None:
        set_parameters(random, state, parameters)
        return placing(random, state)

    return asking


def set_parameters(random: Random, state: State, parameters: Mapping[str, Choices]) -> None:
    """Give all clusters a policy with parameters; None leaves one out."""
    drawn = {name: random.choice(choices) for name, choices in parameters.items()}
    for cluster in state["clusters"]:
        cluster["scheduling_properties"] = {name: value for name, value in drawn.items() if value is not None}


def up_hosts(state: State, cluster: str) -> list[str]:
    """By id, as the engine reads them."""
    return sorted(one["id"] for one in state["hosts"] if one["cluster"] == cluster and one["status"] == "up")


def of_cluster(random: Random, state: State) -> dict[str, Any]:
    return {"cluster": random.choice(state["clusters"])["id"]}


def closing(random: Random, state: State) -> dict[str, Any]:
    """VMs of a cluster whose hard positive peers are asked for."""
    vm = random.choice(state["vms"])
    return {"cluster": vm["cluster"], "vms": [vm["id"]]}


def selecting(random: Random, state: State) -> dict[str, Any] | None:
    """Weights of up to four units for up to fifteen hosts, some left out, in any order."""
    hosts = [uuid(random, "a", number) for number in range(random.choice((1, 2, 3, 4, 6, 12, 13, 14, 15)))]
    units = [uuid(random, "f", number) for number in range(random.randint(1, 4))]
    factors = [[unit, random.choice((1, 1, 2, 20, 99))] for unit in units if random.random() < 0.9]
    records = []
    for unit in units:
        number = random.randint(0, len(hosts)) if random.random() < 0.3 else len(hosts)
        records += [[unit, host, random.choice((0, 1, 1, 2, 10))] for host in random.sample(hosts, number)]
    return {"units": factors, "hosts": hosts, "records": records} if records else None


def moving(random: Random, state: State) -> dict[str, Any] | None:
    """A VM that is to start, or to leave its host; it and none other of its group is asked about."""
    asked = placing(random, state)
    if asked is None:
        return None
    vm = next(vm for vm in state["vms"] if vm["id"] == asked["vms"][0])
    away = [vm["host"]] if vm["host"] is not None and random.random() < 0.8 else []
    return {"vms": asked["vms"][:1], "blacklist": away}


def externally(random: Random, state: State) -> dict[str, Any] | None:
    """The same under a policy with external units, and what these answer."""
    asked = moving(random, state)
    if asked is None:
        return None
    hosts = [host["id"] for host in state["hosts"]]
    names = ["SoftAffinityWeight", "HaReservationWeight"][: random.randint(0, 2)]
    scores = [
        [host, random.choice((0, 1, 2, 5)), *random.choice(([name], [name], []))]
        for host in hosts
        for name in names
        if random.random() < 0.9
    ]
    return {
        **asked,
        "filters": random.choice(([], ["AffinityFilter"], ["AffinityFilter", "HostAffinityFilter"])),
        "weights": [[name, random.choice((1, 7, 200))] for name in names],
        "refused": [host for host in hosts if random.random() < 0.2],
        "scores": scores,
    }


def enforcing(random: Random, state: State) -> dict[str, Any]:
    """No VM migrates: else the engine leaves the cluster alone. So often that what is by lot shows."""
    for vm in state["vms"]:
        if vm["status"] == "migrating":
            vm["status"] = "up"
            vm.pop("migrating_to", None)
    resting = {vm["id"] for vm in state["vms"] if vm["host"] is None}
    state["pending"] = [entry for entry in state["pending"] if entry["vm"] in resting]
    for host in state["hosts"]:
        host["free_mb"] = random.choice((host["free_mb"], 20000, 20000))
        host["cores"] = max(host["cores"], random.choice((1, 8)))
        host["threads"] = 2 * host["cores"]
    return {**of_cluster(random, state), "runs": 24}


def balancing(random: Random, state: State) -> dict[str, Any] | None:
    """The hosts that are asked about when load is balanced: those with nothing on its way."""
    limits = {
        "HighUtilization": (None, "60", "75", "77", "80", "90"),
        "CpuOverCommitDurationMinutes": (None, "2", "5"),
        "MaxFreeMemoryForOverUtilized": (None, None, "1000", "2000"),
        "MinFreeMemoryForUnderUtilized": (None, None, "1500", "3000"),
        "VCpuToPhysicalCpuRatio": (None, None, None, "1", "2"),
    }
    set_parameters(random, state, limits)
    state["affinity_groups"], state["affinity_labels"] = [], []
    cluster = random.choice(state["clusters"])["id"]
    for host in state["hosts"]:
        host["cluster"], host["status"] = cluster, "up"
        host["cpu_percent"] = random.choice((None, 20, 59, 60, 61, 74, 75, 76, 79, 80, 90, 90, 100))
    for vm in state["vms"]:
        vm["cluster"] = cluster
    state["vms"].sort(key=lambda vm: guid_order(vm["id"]))
    coming = {entry["host"] for entry in state["pending"]}
    coming |= {vm.get("migrating_to") for vm in state["vms"]}
    leaving = {vm["host"] for vm in state["vms"] if vm["status"] in ("migrating", "saving_state")}
    hosts = [host for host in up_hosts(state, cluster) if host not in coming | leaving]
    told = {host: {"overloaded_minutes": random.choice((1, 3, 100, 100))} for host in hosts}
    return {"cluster": cluster, "candidate_hosts": hosts, "told": told} if len(hosts) > 1 else None


def overloading(random: Random, state: State) -> dict[str, Any] | None:
    """Hosts that have been busy for a while, under a policy that says how busy is too busy."""
    limits = {"HighUtilization": (None, "75", "80", "90"), "CpuOverCommitDurationMinutes": (None, "2", "5")}
    set_parameters(random, state, limits)
    asked = placing(random, state)
    if asked is None:
        return None
    told = {host: {"overloaded_minutes": random.choice((1, 3, 100))} for host in asked["candidate_hosts"]}
    return {**asked, "told": told}
