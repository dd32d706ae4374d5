"""Each kind of work has its own places: who asks too much is refused, and others get their turn."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any

import pytest

from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.users import Refused, Rights
from ovirt_placement_web import bounds, sessions
from ovirt_placement_web.bounds import Bound, Bounds, Limit, Refusal, Throttle, WebMetrics
from ovirt_placement_web.sessions import Bearers

RIGHT = "right"
#: What others hold up takes longer than this.
SOON = 20.0
ADMIN = Rights("id", "name", administrator=True)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def bound(most: Limit, each: Limit, metrics: WebMetrics | None = None, patience: float = 30.0) -> Bound:
    return Bound(
        metrics or WebMetrics(), "plans", most=most, each=each, retry_seconds=5, patience_seconds=patience
    )


async def begun(asked: Iterable[Coroutine[Any, Any, Any]]) -> list[asyncio.Task[Any]]:
    """Tasks that are as far as they come by themselves."""
    tasks = [asyncio.create_task(one) for one in asked]
    for _ in range(20):
        await asyncio.sleep(0)
    return tasks


async def hold(plans: Bound, held: asyncio.Event, asker: object, order: list[object] | None = None) -> object:
    """Have a place until it is given back."""
    async with plans.place(asker):
        if order is not None:
            order.append(asker)
        await held.wait()
    return asker


async def until(holds: Callable[[], object]) -> None:
    """What other threads do."""
    async with asyncio.timeout(SOON):
        while not holds():
            await asyncio.sleep(0.001)


async def outcomes(tasks: list[asyncio.Task[Any]]) -> Counter[object]:
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    return Counter(one.status if isinstance(one, Refusal) else one for one in ended)


async def test_one_who_asks_300_times_is_refused_and_others_have_the_next_turn() -> None:
    metrics = WebMetrics()
    plans, held = bound(Limit(2, 40), Limit(1, 4), metrics), asyncio.Event()
    order: list[object] = []
    many = await begun(hold(plans, held, "many", order) for _ in range(300))
    (other,) = await begun([hold(plans, held, "other", order)])
    assert order == ["many", "other"], "one asker has one place, however many there are"
    held.set()
    assert await other == "other"
    assert await outcomes(many) == {"many": 5, 429: 295}
    sample = metrics.registry.get_sample_value
    assert sample("ovirt_placement_web_requests_refused_total", {"kind": "plans", "status": "429"}) == 295
    assert sample("ovirt_placement_web_requests_running", {"kind": "plans"}) == 0
    assert sample("ovirt_placement_web_requests_waiting", {"kind": "plans"}) == 0


async def test_all_askers_together_are_refused_with_503_and_when_to_come_again() -> None:
    plans, held = bound(Limit(2, 3), Limit(1, 4)), asyncio.Event()
    tasks = await begun(hold(plans, held, asker) for asker in range(20))
    held.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    refused = [one for one in ended if isinstance(one, Refusal)]
    assert {(one.status, one.headers["Retry-After"]) for one in refused} == {(503, "5")}
    assert (len(refused), len(ended)) == (15, 20)


async def test_where_all_places_are_waited_for_who_asks_much_makes_room_for_who_asks_little() -> None:
    plans, held = bound(Limit(2, 8), Limit(1, 9)), asyncio.Event()
    much = await begun(hold(plans, held, asker) for asker in "ab" * 5)
    little = await begun(hold(plans, held, asker) for asker in "cdefg")
    held.set()
    # As many as came were refused of those who had most.
    assert await outcomes(much) == {"a": 2, "b": 3, 503: 5}
    assert await outcomes(little) == {"c": 1, "d": 1, "e": 1, "f": 1, "g": 1}
    assert await hold(plans, held, "a") == "a"


async def test_who_waits_too_long_or_leaves_costs_no_place() -> None:
    plans, held = bound(Limit(1, 9), Limit(1, 9), patience=0.01), asyncio.Event()
    (holder,) = await begun([hold(plans, held, "one")])
    with pytest.raises(Refusal) as refused:
        await hold(plans, held, "one")
    assert refused.value.status == 503
    (leaving,) = await begun([hold(plans, held, "one")])
    leaving.cancel()
    held.set()
    await holder
    await outcomes([leaving] if not leaving.cancelled() else [])
    await hold(plans, held, "one")
    assert not plans._askers
    assert plans._free == 1


async def test_work_of_one_kind_that_hangs_holds_up_no_other() -> None:
    limits, hangs = Bounds(WebMetrics(), streams=5, streams_each=5), threading.Event()
    kinds = [limits.plans, limits.acts, limits.log_ins, limits.tokens, limits.rights, limits.checks]
    tasks = await begun(kind.run(asker, hangs.wait, 2 * SOON) for kind in kinds for asker in range(60))
    assert await asyncio.wait_for(limits.views.run("a person", lambda: "a view"), SOON) == "a view"
    hangs.set()
    assert (await outcomes(tasks))[503] > 0


class Engine:
    """What it says of tokens: held back until it goes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.goes_on = threading.Event()
        self.good = {"good", "other"}
        self.away = False
        monkeypatch.setattr(sessions, "read_rights", self._rights)

    def _rights(self, tokens: object, token: str) -> Rights:
        self.asked.append(token)
        assert self.goes_on.wait(2 * SOON)
        if self.away:
            raise EngineAway("away", request_sent=True)
        if token not in self.good:
            raise Refused("no")
        return ADMIN


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


@pytest.fixture
def bearing() -> Bearers:
    return Bearers(None, Bounds(WebMetrics(), streams=5, streams_each=5))  # type: ignore[arg-type]


async def test_60_requests_with_one_token_ask_the_engine_once(engine: Engine, bearing: Bearers) -> None:
    tasks = [asyncio.create_task(bearing.rights("good", "1.2.3.4")) for _ in range(60)]
    await until(lambda: engine.asked)
    engine.goes_on.set()
    assert await asyncio.gather(*tasks) == [ADMIN] * 60
    assert engine.asked == ["good"]


async def test_a_token_that_fails_is_counted_by_itself(engine: Engine, bearing: Bearers) -> None:
    engine.goes_on.set()
    for _ in range(10):
        with pytest.raises(Refused):
            await bearing.rights("expired", "1.2.3.4")
    assert engine.asked == ["expired"]
    assert await bearing.rights("good", "1.2.3.4") is ADMIN


async def test_invented_tokens_keep_out_none_that_is_known(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, bearing: Bearers
) -> None:
    engine.goes_on.set()
    await bearing.rights("good", "1.2.3.4")
    for number in range(1200):
        with pytest.raises(Refused):
            await bearing.rights(f"invented-{number}", "1.2.3.4")
    engine.asked.clear()
    await bearing.rights("good", "1.2.3.4")
    assert engine.asked == []
    # Its minute is over while many wait whom nobody knows: it passes them.
    known_at = bearing._known
    bearing._known = {key: (rights, at - 61.0) for key, (rights, at) in known_at.items()}
    engine.goes_on.clear()
    many = await begun(bearing.rights(f"more-{number}", str(number)) for number in range(600))
    again = asyncio.create_task(bearing.rights("good", "1.2.3.4"))
    await until(lambda: "good" in engine.asked)
    engine.goes_on.set()
    assert await again is ADMIN
    assert (await outcomes(many))[503] > 0


async def test_a_right_token_waits_for_its_turn_among_hundreds_that_are_invented(
    engine: Engine, bearing: Bearers
) -> None:
    # From an address that many share, where each token is one by itself.
    many = await begun(bearing.rights(f"invented-{number}", "") for number in range(400))
    (right,) = await begun([bearing.rights("good", "")])
    engine.goes_on.set()
    assert await right is ADMIN
    assert (await outcomes(many))[503] == 0


@pytest.mark.parametrize("one_token", [True, False])
async def test_while_the_engine_hangs_few_connections_wait_for_its_word_of_a_token(
    engine: Engine, one_token: bool, bearing: Bearers
) -> None:
    names = ["same" if one_token else f"invented-{number}" for number in range(2000)]
    many = await begun(bearing.rights(name, "") for name in names)
    assert sum(not task.done() for task in many) <= (100 if one_token else 500)
    engine.goes_on.set()
    await outcomes(many)


class Paused:
    """A throttle whose clock and pauses the test has in its hands."""

    def __init__(self) -> None:
        self.now = 0.0
        self.right = RIGHT
        self.pauses = 0
        self.ends = asyncio.Event()
        self.asked: list[tuple[str, str]] = []
        self.throttle = Throttle(WebMetrics(), lambda: self.now, self._pause)

    async def _pause(self, seconds: float) -> None:
        self.pauses += 1
        await self.ends.wait()
        self.now += seconds

    async def log_in(self, name: str, address: str, password: str = "wrong") -> str:
        async with self.throttle.turn(name, address, password):
            self.asked.append((name, address))
            await asyncio.sleep(0)
            if password != self.right:
                raise Refused("no")
        return "in"


@pytest.fixture
def at() -> Paused:
    return Paused()


@pytest.mark.parametrize("by", ["name", "address"])
async def test_of_1000_wrong_log_ins_at_once_the_engine_is_asked_five_and_then_eight_a_second(
    by: str, at: Paused
) -> None:
    def who(number: int) -> tuple[str, str]:
        return ("victim", str(number)) if by == "name" else (f"name-{number}", "192.0.2.1")

    tasks = await begun(at.log_in(*who(number)) for number in range(1000))
    assert (len(at.asked), at.pauses) == (5, 8)
    # From elsewhere, and with another name, nobody notices.
    assert await at.log_in("other", "203.0.113.9", RIGHT) == "in"
    at.ends.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert at.now == 308.0  # eight at a time
    assert Counter(type(one) for one in ended) == {Refused: 313, Refusal: 687}


@pytest.mark.parametrize("address", ["", "192.0.2.1"])
async def test_the_last_right_password_passes_all_that_are_guessed_from_the_same_place(
    address: str, at: Paused
) -> None:
    assert await at.log_in("admin@internal", address, RIGHT) == "in"
    guesses = await begun(at.log_in("admin@internal", address, f"{n}") for n in range(1000))
    assert await at.log_in("Admin@INTERNAL", address, RIGHT) == "in"
    # An earlier one passes once, and is a guess as others from then on.
    at.right = "changed"
    with pytest.raises(Refused):
        await at.log_in("admin@internal", address, RIGHT)
    with pytest.raises(Refusal) as refused:
        await asyncio.wait_for(at.log_in("admin@internal", address, RIGHT), SOON)
    assert int(refused.value.headers["Retry-After"]) > 0
    at.ends.set()
    await asyncio.gather(*guesses, return_exceptions=True)


async def test_all_that_are_slowed_leave_room_for_others(at: Paused) -> None:
    tasks = await begun(at.log_in(f"name-{n % 100}", f"192.0.2.{n % 99}") for n in range(1200))
    assert sum(not task.done() for task in tasks) <= 1000
    at.ends.set()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("address", ["", "192.0.2.1"])
async def test_a_right_password_is_let_in_after_wrong_ones_from_anywhere(address: str, at: Paused) -> None:
    at.ends.set()
    for number in range(20):
        with pytest.raises(Refused):
            await at.log_in("Admin@internal", address and f"198.51.100.{number}")
    before = at.now
    assert await at.log_in("admin@INTERNAL", address, RIGHT) == "in"
    assert at.now == before + 1.0
    at.now += 300.0
    assert await at.log_in("admin@internal", address, RIGHT) == "in"
    assert at.now == before + 301.0


async def test_one_address_that_goes_on_guessing_has_every_other_turn_at_most(at: Paused) -> None:
    at.ends.set()
    guesses = [asyncio.create_task(at.log_in("admin", "198.51.100.1")) for _ in range(60)]
    await asyncio.gather(*guesses, return_exceptions=True)
    at.ends.clear()
    guesses = await begun(at.log_in("admin", "198.51.100.1") for _ in range(60))
    (person,) = await begun([at.log_in("admin", "192.0.2.1", RIGHT)])
    at.asked.clear()
    at.ends.set()
    assert await person == "in"
    await asyncio.gather(*guesses, return_exceptions=True)
    assert at.asked.index(("admin", "192.0.2.1")) <= 2


@pytest.mark.parametrize("name", ["victim", "another"], ids=["the same name", "another name"])
async def test_few_addresses_with_many_guesses_keep_no_right_password_out(name: str, at: Paused) -> None:
    """The name has not logged in before, and failed from elsewhere; 100 addresses guess as they like."""
    at.ends.set()
    for number in range(5):
        with pytest.raises(Refused):
            await at.log_in(name, f"203.0.113.{number}")
    at.ends.clear()
    guesses = await begun(
        at.log_in("victim" if n % 2 else f"name-{n % 50}", f"192.0.2.{n % 100}") for n in range(1500)
    )
    (person,) = await begun([at.log_in(name, "198.51.100.1", RIGHT)])
    at.ends.set()
    assert await person == "in"
    await asyncio.gather(*guesses, return_exceptions=True)


async def test_a_right_password_has_its_turn_among_300_guesses_from_the_same_place(at: Paused) -> None:
    """Where many come from one address that stands for all of them."""
    guesses = await begun(at.log_in("victim", "", f"{n}") for n in range(300))
    (person,) = await begun([at.log_in("victim", "", RIGHT)])
    at.ends.set()
    assert await person == "in"
    assert {type(one) for one in await asyncio.gather(*guesses, return_exceptions=True)} == {Refused}


async def test_names_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_MOST_KEYS", 50)
    at = Paused()
    for number in range(80):
        with suppress(Refused):
            await at.log_in(f"{number}", "")
    assert list(at.throttle._tries) == [("name", f"{number}") for number in range(30, 80)]
