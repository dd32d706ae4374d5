"""What is asked about a random state: VMs and hosts, weights to put together, changes to check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any

from tests.engine.question import Question
from tests.engine.states import State, random_state, uuid

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
        for host in random.sample(hosts, random.randint(0, len(hosts)) if random.random() < 0.3 else len(hosts)):
            records.append([unit, host, random.choice((0, 1, 1, 2, 10))])
    return {"units": factors, "hosts": hosts, "records": records} if records else None
