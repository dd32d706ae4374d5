"""What is asked about a random state: VMs and hosts, weights to put together, changes to check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any

from tools.engine_conformance.question import Question
from tools.engine_conformance.states import State, random_state, signed_halves, uuid

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
    for name in ("ScaleDown", "ha_weight_scale_down"):
        for cluster in state["clusters"]:
            cluster.setdefault("scheduling_properties", {}).update({name: scale} if scale else {})
    for cluster in state["clusters"]:
        cluster.setdefault("scheduling_properties", {})["ha_measure"] = "vms"
    asked = placing(random, state)
    return asked and {**asked, "vms": asked["vms"][:1]}


def placing_with(**parameters: Callable[[Random], str | None]) -> Asking:
    """The same under a policy with parameters."""

    def asking(random: Random, state: State) -> dict[str, Any] | None:
        set_parameters(random, state, parameters)
        return placing(random, state)

    return asking


def set_parameters(
    random: Random, state: State, parameters: dict[str, Callable[[Random], str | None]]
) -> None:
    """Give all clusters a policy with parameters; None leaves one out."""
    drawn = {name: draw(random) for name, draw in parameters.items()}
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
        for host in random.sample(
            hosts, random.randint(0, len(hosts)) if random.random() < 0.3 else len(hosts)
        ):
            records.append([unit, host, random.choice((0, 1, 1, 2, 10))])
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
    """Nobody migrates: else the engine leaves the cluster alone. So often that what is by lot shows."""
    for vm in state["vms"]:
        if vm["status"] == "migrating":
            vm["status"] = "up"
            vm.pop("migrating_to", None)
    state["pending"] = [entry for entry in state["pending"] if _rests(state, entry["vm"])]
    for host in state["hosts"]:
        host["free_mb"] = random.choice((host["free_mb"], 20000, 20000))
        host["cores"] = max(host["cores"], random.choice((1, 8)))
        host["threads"] = 2 * host["cores"]
    return {**of_cluster(random, state), "runs": 24}


def _rests(state: State, vm: str) -> bool:
    return any(one["id"] == vm and one["host"] is None for one in state["vms"])


def cycling(random: Random, state: State) -> dict[str, Any]:
    """As the timer asks: all clusters, and some commands fail."""
    asked = {"runs": 60} if random.random() < 0.3 else enforcing(random, state) | {"runs": 60}
    asked.pop("cluster", None)
    return {**asked, "refused": [vm["id"] for vm in state["vms"]] if random.random() < 0.2 else []}


def balancing(random: Random, state: State) -> dict[str, Any] | None:
    """The hosts that are asked about when load is balanced: those with nothing on its way."""
    limits = {
        "HighUtilization": lambda random: random.choice((None, "60", "75", "77", "80", "90")),
        "CpuOverCommitDurationMinutes": lambda random: random.choice((None, "2", "5")),
        "MaxFreeMemoryForOverUtilized": lambda random: random.choice((None, None, "1000", "2000")),
        "MinFreeMemoryForUnderUtilized": lambda random: random.choice((None, None, "1500", "3000")),
        "VCpuToPhysicalCpuRatio": lambda random: random.choice((None, None, None, "1", "2")),
    }
    set_parameters(random, state, limits)
    state["affinity_groups"], state["affinity_labels"] = [], []
    cluster = random.choice(state["clusters"])["id"]
    for host in state["hosts"]:
        host["cluster"], host["status"] = cluster, "up"
        host["cpu_percent"] = random.choice((None, 20, 59, 60, 61, 74, 75, 76, 79, 80, 90, 90, 100))
    for vm in state["vms"]:
        vm["cluster"] = cluster
    state["vms"].sort(key=lambda vm: signed_halves(vm["id"]))
    coming = {entry["host"] for entry in state["pending"]}
    coming |= {vm.get("migrating_to") for vm in state["vms"]}
    leaving = {vm["host"] for vm in state["vms"] if vm["status"] in ("migrating", "saving_state")}
    hosts = [host for host in up_hosts(state, cluster) if host not in coming | leaving]
    told = {host: {"overloaded_minutes": random.choice((1, 3, 100, 100))} for host in hosts}
    return {"cluster": cluster, "candidate_hosts": hosts, "told": told} if len(hosts) > 1 else None


def overloading(random: Random, state: State) -> dict[str, Any] | None:
    """Hosts that have been busy for a while, under a policy that says how busy is too busy."""
    limits = {
        "HighUtilization": lambda random: random.choice((None, "75", "80", "90")),
        "CpuOverCommitDurationMinutes": lambda random: random.choice((None, "2", "5")),
    }
    set_parameters(random, state, limits)
    asked = placing(random, state)
    if asked is None:
        return None
    told = {host: {"overloaded_minutes": random.choice((1, 3, 100))} for host in asked["candidate_hosts"]}
    return {**asked, "told": told}


def placing_alongside_the_engine(random: Random, state: State) -> dict[str, Any] | None:
    """Hosts that can run the engine's own VM, and often that VM."""
    set_parameters(random, state, {"HeSparesCount": lambda random: random.choice((None, "1", "2", "3"))})
    for number, vm in enumerate(state["vms"]):
        vm["hosted_engine"] = number == 0 and random.random() < 0.8
    asked = placing(random, state)
    if asked is None:
        return None
    told = {
        host["id"]: {
            "hosted_engine_configured": random.random() < 0.8,
            "hosted_engine_active": random.random() < 0.8,
            "hosted_engine_score": random.choice((0, 1, 800, 1600, 2599, 2600, 2601, 3399, 3400)),
            "hosted_engine_local_maintenance": random.random() < 0.2,
            "hosted_engine_global_maintenance": random.random() < 0.2,
        }
        for host in state["hosts"]
    }
    return {**asked, "told": told}


def validating(random: Random, state: State) -> dict[str, Any]:
    """The groups of a cluster as they are, or those and the labels that a VM or host of it shall have."""
    cluster = random.choice(state["clusters"])["id"]
    request: dict[str, Any] = {"cluster": cluster}
    for key, entries in (("vm", state["vms"]), ("host", state["hosts"])):
        inside = [one["id"] for one in entries if one["cluster"] == cluster]
        if inside and random.random() < 0.4:
            own = [
                one["id"]
                for one in state["affinity_groups"]
                if one["cluster"] == cluster or random.random() < 0.1
            ]
            labels = [one["id"] for one in state["affinity_labels"]]
            return {
                **request,
                key: random.choice(inside),
                "groups": random.choice((None, random.sample(own, random.randint(0, len(own))))),
                "labels": random.choice((None, random.sample(labels, random.randint(0, len(labels))))),
            }
    return request
