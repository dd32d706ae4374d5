"""Draws small clusters with hard and soft rules, and what befalls them: failures, people, refusals."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.builders import (
    APART,
    DISABLED,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    cluster,
    group,
    host,
    label,
    vm,
)
from tests.scenarios.stage import Happening

#: When the last trouble begins, in simulated seconds.
TROUBLED_SECONDS = 500.0

_RULES = (TOGETHER, TOGETHER, APART, APART, APART, APART, SOFT_TOGETHER, SOFT_APART)
_FREE_MB = (0, 2048, 4096, 8192, 8192, 16384, 32768)


@dataclass(frozen=True)
class Case:
    """One cluster, what befalls it, and what of it is opted out. Every id begins with the cluster's."""

    cluster: str
    parts: tuple[Part, ...]
    happenings: tuple[Happening, ...]
    exclude_vms: tuple[str, ...] = ()
    exclude_hosts: tuple[str, ...] = ()


def drawn(seed: int, *, vms: int = 6) -> Case:
    """Two to four hosts and up to this many VMs; the same for the same seed, whatever is besides it."""
    chance = random.Random(seed)
    name = f"c{seed}"
    hosts = [f"{name}-h{number}" for number in range(chance.choice((2, 3, 3, 4, 4)))]
    names = [f"{name}-v{number}" for number in range(chance.randint(3, vms))]
    happenings = tuple(_troubles(chance, name, hosts, names))
    return Case(
        cluster=name,
        parts=tuple(_parts(chance, name, hosts, names)),
        happenings=happenings,
        exclude_vms=tuple(one for one in names if chance.random() < 0.04),
        exclude_hosts=tuple(one for one in hosts if chance.random() < 0.02),
    )


def _parts(chance: random.Random, name: str, hosts: Sequence[str], vms: Sequence[str]) -> Iterator[Part]:
    old = chance.random() < 0.15
    yield cluster(name, compatibility="4.3" if old else "4.7")
    for one in hosts:
        yield host(one, cluster=name, free_mb=chance.choice(_FREE_MB))
    for one in vms:
        yield vm(
            one,
            chance.choice((*hosts, hosts[0], hosts[0], *((None,) if chance.random() < 0.4 else ()))),
            cluster=name,
            memory_mb=chance.choice((1024, 1024, 2048, 4096)),
            usage_cpu_percent=1,
            # The least that the engine counts for any VM: so the daemon reads it, whatever the state says.
            video_mb=16,
            migratable=chance.random() < 0.95,
            ha=chance.random() < 0.3,
            pinned_hosts=(chance.choice(hosts),) if chance.random() < 0.04 else (),
        )
    for number in range(chance.choice((1, 2, 2, 3, 3))):
        yield _group(chance, f"{name}-g{number}", name, hosts, vms)
    if old:
        yield label(f"{name}-l", " ".join(_some(chance, vms)), " ".join(_some(chance, hosts)), implicit=True)


def _group(chance: random.Random, name: str, of: str, hosts: Sequence[str], vms: Sequence[str]) -> Part:
    members = " ".join(_some(chance, vms, least=2))
    if chance.random() < 0.2:
        listed = " ".join(_some(chance, hosts))
        return group(name, DISABLED, members, hosts_rule=chance.choice(_RULES), hosts=listed, cluster=of)
    return group(name, chance.choice(_RULES), members, cluster=of)


def _some(chance: random.Random, of: Sequence[str], least: int = 1) -> list[str]:
    return chance.sample(of, chance.randint(least, max(least, min(3, len(of)))))


def _troubles(
    chance: random.Random, name: str, hosts: Sequence[str], vms: Sequence[str]
) -> Iterator[Happening]:
    """None, a few or many, at any time; the first ones may come before the enforcer has looked."""
    added = 0
    for one in vms:
        if chance.random() < 0.25:
            yield Happening(
                at=0.0, what="fail_migrations", arguments={"vm": one, **chance.choice(_FAULTS), "count": 2}
            )
    for _ in range(chance.choice((0, 1, 2, 3, 5, 8))):
        at = chance.choice((0.0, chance.uniform(0, 20), chance.uniform(0, TROUBLED_SECONDS)))
        one, where = chance.choice(vms), chance.choice(hosts)
        what = chance.choice(_WHAT)
        arguments: dict[str, Any]
        if what in {"fail_host", "recover_host", "deactivate_host", "activate_host"}:
            arguments = {"host": where}
        elif what == "fail_migrations":
            arguments = {"vm": one, **chance.choice(_FAULTS), "count": chance.randint(1, 3)}
        elif what == "migrate_vm":
            arguments = {"vm": one, "host": chance.choice((where, None))}
        elif what == "edit_group":
            number = chance.randint(0, 3)
            arguments = {"group": f"{name}-g{number}", "vms": sorted(_some(chance, vms, least=2))}
        elif what == "add_group":
            added += 1
            arguments = {
                "name": f"{name}-new{added}",
                "cluster": name,
                "together": chance.random() < 0.4,
                "vms": sorted(_some(chance, vms, least=2)),
            }
        elif what == "remove_group":
            arguments = {"group": f"{name}-g{chance.randint(0, 3)}"}
        else:
            arguments = {"vm": one}
        yield Happening(at=round(at, 1), what=what, arguments=arguments)


#: How often what is drawn, of all together.
_WEIGHTS = {
    "fail_host": 2,
    "recover_host": 1,
    "deactivate_host": 1,
    "activate_host": 1,
    "fail_migrations": 4,
    "start_vm": 2,
    "shut_vm": 1,
    "crash_vm": 1,
    "suspend_vm": 1,
    "migrate_vm": 3,
    "cancel_migration": 1,
    "edit_group": 1,
    "add_group": 4,
    "remove_group": 1,
}
_WHAT = [what for what, weight in _WEIGHTS.items() for _ in range(weight)]
_FAULTS: tuple[dict[str, Any], ...] = ({"fail": True}, {"hang": True}, {"slow": 12.0}, {"refuse": True})


def of_the_engine(chance: random.Random) -> Iterator[Happening]:
    """What befalls all: requests and answers get lost, the engine is away, the enforcer is killed."""
    for _ in range(chance.randint(0, 5)):
        at = round(chance.uniform(0, TROUBLED_SECONDS), 1)
        what = chance.choice(("lose", "lose", "lose", "away", "restart", "race", "race"))
        if what == "lose":
            path = chance.choice(("/migrate", "/migrate", "/vms", "/events", ""))
            how = chance.choice(({"drop": "request"}, {"drop": "answer"}, {"status": 503}))
            yield Happening(at=at, what="disturb", arguments={"path": path, "times": 1, **how})
        elif what == "away":
            yield Happening(at=at, what="disturb", arguments={"drop": "request", "times": None})
            yield Happening(at=at + chance.choice((5.0, 60.0, 200.0)), what="engine_returns")
        else:
            yield Happening(at=at, what=what)
