"""Faults of answers: what comes back from the engine, or from what stands before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.builders import CLUSTER
from tools.faults import distortions
from tools.faults.clusters import LATE
from tools.faults.distortions import with_act
from tools.faults.stage import Stage
from tools.faults.wire import Distorted

#: What is read of a cluster, and of a VM that migrates.
_LISTS = ("/clusters", "/hosts", "/vms", "/affinitylabels")
#: ... and after what comes first.
_LATER_LISTS = ("/vms", "/affinitylabels", "/affinitylabels")
_ONE_VM = "/vms/[^/]+"
MIGRATE = f"{_ONE_VM}/migrate"
_ANYTHING = "/.*"

_Fault = Callable[[Stage, Random], None]


def _of_readings(answer: Distorted) -> _Fault:
    """Strike some readings of everything, the first or later ones."""

    def strike(stage: Stage, chance: Random) -> None:
        for path in _LISTS:
            stage.wire.distort("GET", path, answer, skip=chance.randrange(4), times=chance.randint(1, 2))

    return strike


def _once_known(answer: Distorted) -> _Fault:
    """Strike the very reading that shows a rule which somebody has made, when all was repaired before."""

    def strike(stage: Stage, chance: Random) -> None:
        def make_rule() -> None:
            stage.wire.distort("GET", path, answer)
            stage.engine.engine.affinity_groups.add(CLUSTER, LATE)

        path = chance.choice(_LATER_LISTS)
        _ = stage.enforcer
        stage.until(lambda: stage.recorder.repaired)
        stage.wire.distort("GET", _LISTS[0], with_act(make_rule, first=True))

    return strike


def _of_looks(answer: Distorted) -> _Fault:
    """Strike looks at a VM on its way."""

    def strike(stage: Stage, chance: Random) -> None:
        stage.wire.distort("GET", _ONE_VM, answer, skip=chance.randrange(4), times=chance.randint(1, 3))

    return strike


def _of_requests(answer: Distorted) -> _Fault:
    """Strike the first or the second request for a migration."""

    def strike(stage: Stage, chance: Random) -> None:
        stage.wire.distort("POST", MIGRATE, answer, skip=chance.randrange(2))

    return strike


def _of_any(answer: Distorted, times: int) -> _Fault:
    """Strike many requests in a row, once the first is answered."""

    def strike(stage: Stage, chance: Random) -> None:
        stage.wire.distort("GET", _ANYTHING, answer, skip=chance.randint(1, 12), times=times)

    return strike


FAULTS: Mapping[str, _Fault] = {
    "HTML 404 for lists": _of_readings(distortions.page(404)),
    "HTML 404 for a list that was known": _once_known(distortions.page(404)),
    "HTML 404 for a VM": _of_looks(distortions.page(404)),
    "HTML 404 for a migration": _of_requests(distortions.page(404)),
    "empty list that was known": _once_known(distortions.empty),
    "500 for lists": _of_readings(distortions.page(500)),
    "500 before acting": _of_requests(distortions.page(500)),
    "500 after acting": _of_requests(distortions.page_after_acting),
    "no answer before acting": _of_requests(distortions.nothing),
    "no answer after acting": _of_requests(distortions.nothing_after_acting),
    "silence after acting": _of_requests(distortions.silence),
    "silence of a VM": _of_looks(distortions.silence),
    "cut lists": _of_readings(distortions.cut),
    "cut answer to a migration": _of_requests(distortions.cut),
    "half a list": _of_readings(distortions.half),
    "half an answer to a migration": _of_requests(distortions.half),
    "gzip bomb": _once_known(distortions.bomb),
    "401 storm": _of_any(distortions.page(401), 20),
    "401 for a migration": _of_requests(distortions.page(401)),
    "redirect of lists": _of_readings(distortions.redirect),
    "redirect of a migration": _of_requests(distortions.redirect),
    "slow answers": _of_any(distortions.slow, 30),
}
