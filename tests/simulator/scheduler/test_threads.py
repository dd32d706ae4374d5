"""Many clients at once, while time passes: nobody waits for ever, and the books agree."""

import contextlib
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ovirt_placement.model import SchedulingPolicy
from ovirt_simulator.core.backend import Action, Settings
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from tests.builders import APART, TOGETHER, cluster, group, host, needed_mb, vm
from tests.simulator.core import engines
from tests.simulator.scheduler.proxy import Proxy, reply

HOSTS = ("h1", "h2", "h3", "h4")
VMS = tuple(f"v{number}" for number in range(12))
FREE = 6000
VM_COMMANDS = ("start", "stop", "migrate", "migrate", "suspend", "cancel_migration", "crash")
HOST_COMMANDS = ("fail", "recover", "recover", "deactivate", "activate", "activate")


def client(engine: Engine, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(300):
        command = getattr(engine.vms, dice.choice(VM_COMMANDS))
        target = dice.choice(VMS)
        if dice.random() < 0.05:
            command, target = getattr(engine.hosts, dice.choice(HOST_COMMANDS)), dice.choice(HOSTS)
        with contextlib.suppress(Rejected):
            command(target)


def clock(engine: Engine, done: threading.Event) -> None:
    while not done.is_set():
        engine.advance(0.2)


@pytest.mark.system
def test_clients_and_the_clock_do_not_spoil_each_other(proxy: Proxy) -> None:
    begun: list[threading.Thread] = []

    def background(action: Action) -> None:
        begun.append(threading.Thread(target=action))
        begun[-1].start()

    engine = engines.engine(
        cluster(scheduling_policy=SchedulingPolicy(filters=("AffinityFilter",))),
        *(host(name, free_mb=FREE) for name in HOSTS),
        *(vm(name, ha=True) for name in VMS),
        group("g1", TOGETHER, "v1 v2"),
        group("g2", APART, "v3 v4"),
        proxy=proxy.url,
        background=background,
        settings=Settings(affinity_enforcement_seconds=20.0, retry_seconds=5.0, memory_count_seconds=0.0),
    )

    def read_and_keep_all(names: list[str], hosts: list[str], *_: object) -> object:
        assert engine.queries.state.hosts.values()
        return reply(hosts)

    proxy.run_filters = read_and_keep_all
    done = threading.Event()
    with ThreadPoolExecutor() as pool:
        ticking = pool.submit(clock, engine, done)
        clients = [pool.submit(client, engine, seed) for seed in range(4)]
        try:
            for each in clients:
                each.result(60)
        finally:
            done.set()
        ticking.result(60)
    come_to_rest(engine, begun)
    assert sum(call[0] == "runFilters" for call in proxy.calls) > 10
    for known in engine.queries.state.hosts.values():
        vms = [v for v in tuple(engine.queries.state.vms.values()) if known.id in (v.host, v.migrating_to)]
        assert known.free_mb == FREE - sum(map(needed_mb, vms)) >= 0
    assert {v.status for v in tuple(engine.queries.state.vms.values())} <= {"up", "down", "suspended"}


def come_to_rest(engine: Engine, begun: list[threading.Thread]) -> None:
    for name in HOSTS:
        engine.hosts.recover(name)
    for _ in range(300):
        engine.advance(1)
        for thread in begun:
            thread.join(20)
            assert not thread.is_alive()
        begun.clear()
