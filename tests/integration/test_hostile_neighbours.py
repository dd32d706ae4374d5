"""Whatever two neighbours do, people, engine and enforcer are served; and all is as before afterwards."""

import itertools
import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.kit.hostile.neighbours import ENGINES, NEIGHBOURS
from tests.kit.hostile.site import ENGINE_SECONDS, Place, Site, site
from tests.kit.hostile.witnesses import CYCLE_SECONDS, RECOVERY_SECONDS, Witnesses
from tests.placement.databases import postgresql

#: How long two neighbours act in each suite, and for how long nobody acts before they do.
_ACT_SECONDS, _ALONE_SECONDS = 3.0, 2.0
_PAIRS = list(itertools.combinations(NEIGHBOURS, 2))
_FEW = 4
#: The same few each time, unless others are asked for; at night all act.
SEED = int(os.environ.get("SEED", "20785"))


@pytest.fixture(scope="module")
def witnesses(request: pytest.FixtureRequest) -> Iterator[tuple[Site, Witnesses]]:
    """Those of a place; one is left before the next is gone to."""
    where: str = request.param
    if where == "Apache" and shutil.which("apache2") is None:
        pytest.skip("there is no apache2")
    with ExitStack() as stack:
        url = stack.enter_context(postgresql()) if where == "PostgreSQL, TLS" else None
        place = Place(url, tls=where in _ELSEWHERE, apache=where == "Apache", relayed=where == "relay")
        running = stack.enter_context(site(place))
        made = Witnesses(running)
        _until_well(running, made, 60.0)
        yield running, made


def _rises(witnesses: Witnesses, seconds: float, *results: str) -> bool:
    """Whether the enforcer ends another cycle."""
    before, until = witnesses.cycles(*results), time.monotonic() + seconds
    while witnesses.cycles(*results) <= before:
        if time.monotonic() > until:
            return False
        threading.Event().wait(0.1)
    return True


def _until_well(running: Site, witnesses: Witnesses, seconds: float) -> float | None:
    """Seconds until all was well for a moment; None if that took longer than it may."""
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        running.check()
        with witnesses.asking() as noticed:
            cycles = _rises(witnesses, seconds, "ok")
        if cycles and not (witnesses.complaints(*noticed) if witnesses.alone else noticed[0].faults):
            return time.monotonic() - began
    return None


def act(running: Site, witnesses: Witnesses, names: tuple[str, ...]) -> list[str]:
    """Let them act; what others noticed that they must not."""
    alone = witnesses.measure_alone(_ALONE_SECONDS)
    with ExitStack() as acting:
        for name, neighbour in {**NEIGHBOURS, **ENGINES}.items():
            if name in names:
                acting.enter_context(neighbour(running, 1.0))
        with witnesses.asking() as noticed:
            threading.Event().wait(_ACT_SECONDS if {*names} <= {*NEIGHBOURS} else 2 * ENGINE_SECONDS)
            rises = _rises(witnesses, CYCLE_SECONDS, "ok", "failed")
    person, engine = noticed
    found = witnesses.complaints(*noticed) + ([] if rises else ["the enforcer does not go on"])
    well = _until_well(running, witnesses, RECOVERY_SECONDS)
    if found:
        # Others of this machine may have come meanwhile: by themselves calls take as long as before or after.
        before = witnesses.alone
        witnesses.measure_alone(_ALONE_SECONDS)
        witnesses.alone = max(before, witnesses.alone)
        found = witnesses.complaints(*noticed) + ([] if rises else ["the enforcer does not go on"])
    figures = (
        f"{' + '.join(names)}: person {person.longest():.2f} s at most (alone {alone.longest():.2f};"
        f" {len(person.seconds)} views),"
        f" engine {1000 * engine.usual():.0f} ms (alone {1000 * witnesses.alone:.0f};"
        f" {1000 * engine.longest():.0f} at most; {len(engine.seconds)} calls),"
        f" well again after {'more than ten' if well is None else f'{well:.1f}'} s"
    )
    print(figures, *found, sep="\n  ", file=sys.stderr, flush=True)
    return found + ([] if well is not None else ["not as before within ten seconds"])


#: What differs where the store is another and the page speaks TLS, or Apache does, which has room of its own.
_ELSEWHERE = {
    "PostgreSQL, TLS": [
        ("silent connections", "invented tokens"), ("slow heads", "slow bodies"),
        ("dear questions", "endless command"), ("local user", "hanging engine"),
    ],
    "Apache": [
        ("slow bodies", "invented tokens"), ("expired tokens", "dear questions"),
        ("endless command", "hanging engine"),
    ],
}  # fmt: skip


def _cases() -> Iterator[Any]:
    """Where, who acts, and in which suite: a few pairs, and engines that end no answer; others at night."""
    few = random.Random(SEED).sample(_PAIRS, _FEW)
    for suite, places in (
        (pytest.mark.system, {"direct": few, "relay": [(name,) for name in ENGINES]}),
        (pytest.mark.nightly, {"direct": [one for one in _PAIRS if one not in few], **_ELSEWHERE}),
    ):
        for where, acting in places.items():
            for names in acting:
                yield pytest.param(where, names, marks=suite, id=f"{where}: {' + '.join(names)}")


@pytest.mark.timing
@pytest.mark.parametrize(("witnesses", "names"), list(_cases()), indirect=["witnesses"])
def test_others_are_served_and_all_is_as_before(
    witnesses: tuple[Site, Witnesses], names: tuple[str, ...]
) -> None:
    if os.getuid() != 0 and {"local user", "full disk"} & {*names}:
        pytest.skip("as root alone")
    assert act(*witnesses, names) == []
