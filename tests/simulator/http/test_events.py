"""The audit log: reading it by parts, adding external events, dismissing them."""

from typing import Any

import pytest
from ovirtsdk4 import Connection, types
from ovirtsdk4.services import EventsService, SystemService

from ovirt_simulator.core.backend import Settings
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Event
from tests.builders import host, vm
from tests.simulator.core import engines
from tests.simulator.http.plain import Api


@pytest.fixture
def events(system: SystemService) -> EventsService:
    return system.events_service()


def external(
    custom_id: int, severity: types.LogSeverity = types.LogSeverity.NORMAL, **fields: object
) -> types.Event:
    return types.Event(
        origin="test", custom_id=custom_id, severity=severity, description=f"event {custom_id}", **fields
    )


def test_from_is_exclusive_and_max_gives_the_newest(events: EventsService) -> None:
    ids = [int(events.add(external(number)).id) for number in range(5)]
    assert [int(event.id) for event in events.list()] == ids[::-1], "newest first"
    assert [int(event.id) for event in events.list(from_=ids[1])] == ids[:1:-1]
    assert [int(event.id) for event in events.list(from_=ids[0], max=2)] == [ids[4], ids[3]]
    assert len(events.list(from_=0)) == 5


def test_an_events_fields(engine: Engine, system: SystemService, events: EventsService) -> None:
    system.vms_service().vm_service("spare").start(query={"correlation_id": "abc"})
    engine.advance(60)
    run = next(event for event in events.list() if event.code == 32)
    assert (run.severity, run.origin, run.custom_id) == (types.LogSeverity.NORMAL, "oVirt", -1)
    assert (run.vm.id, run.vm.name, run.correlation_id) == ("spare", "spare", "abc")
    assert run.host.name in run.description
    assert run.index == int(run.id)
    assert run.time.tzinfo is not None
    assert events.event_service(run.id).get().description == run.description


@pytest.mark.parametrize("missing", ["origin", "severity", "custom_id", "description"])
def test_four_fields_are_mandatory(api: Api, missing: str) -> None:
    fields = {"origin": "test", "severity": "normal", "custom_id": "1", "description": "d"}
    whole = {tag: f"<{tag}>{value}</{tag}>" for tag, value in fields.items()}
    body = f"<event>{''.join(whole.values())}</event>"
    reply = api("events", "POST", body.replace(whole[missing], ""))
    assert (reply.status, reply.xml.findtext("reason")) == (400, "Input validation failed.")
    assert reply.xml.findtext("detail") == f"Parameter 'event.{missing}' is mandatory but was not provided."
    assert api("events", "POST", body).status == 201
    assert api("events", "POST", body.replace(">1<", ">x<")).status == 400


def test_searched(events: EventsService) -> None:
    for number in range(4):
        events.add(external(number, types.LogSeverity.ERROR if number % 2 else types.LogSeverity.NORMAL))
    assert [event.custom_id for event in events.list(search="severity=error")] == [3, 1]
    assert [event.custom_id for event in events.list(search="severity=normal and origin=test")] == [2, 0]


def test_users_have_an_id_but_the_engine_has_a_name_alone(
    engine: Engine, sdk: Connection, system: SystemService, events: EventsService
) -> None:
    engine.vms.crash("web1")
    down = events.list()[0]
    assert (down.user.id, down.user.href, down.user.name) == (None, None, "SYSTEM")
    system.vms_service().vm_service("idle").stop()
    stopped = events.list()[0]
    own = system.get().authenticated_user
    assert (stopped.user.id, stopped.user.name) == (own.id, "admin@internal-authz")
    assert sdk.follow_link(stopped.user).user_name == "admin@internal-authz"


def test_an_added_event_has_what_it_names(events: EventsService) -> None:
    cluster, vm = types.Cluster(id="cluster1"), types.Vm(id="web1")
    added = events.add(external(7, cluster=cluster, vm=vm, correlation_id="mine"))
    assert (added.cluster.name, added.vm.name, added.correlation_id) == ("Default", "web1", "mine")
    assert events.add(external(1)).user is None, "its author is not shown"
    named = events.add(external(2, user=types.User(id="someone"))).user
    assert (named.id, named.name) == ("someone", None)


# -- Events that come before their state, late ids, and what users add.
def log(engine: Engine, **fields: Any) -> Event:
    given = {"origin": "tests", "severity": "warning", "custom_id": 1, "description": "d", **fields}
    return engine.events.add(**given)


def test_an_event_is_there_before_the_state_it_speaks_of() -> None:
    settings = Settings(state_lag_seconds=5.0, late_event_probability=0.0)
    engine = engines.engine(host("h1"), vm("v"), settings=settings)
    engine.vms.start("v")
    seen = set()
    for _ in range(200):
        engine.advance(0.1)
        seen.add((32 in engines.codes(engine), *engines.where(engine, "v")))
    assert (True, "powering_up", "h1") in seen
    assert engines.shown(engine, "v") == ["up h1"]


def test_ids_become_visible_out_of_order_but_all_do() -> None:
    settings = Settings(late_event_probability=0.5, late_event_seconds=3.0)
    engine = engines.engine(host("h1"), settings=settings)
    late = False
    for number in range(40):
        engine.labels.add(f"label{number}")
        engine.advance(0.1)
        ids = [event.id for event in engine.queries.events()]
        assert ids == sorted(ids, reverse=True)
        late = late or bool(ids and len(ids) < ids[0])
    assert late
    engine.advance(10)
    assert [event.id for event in engine.queries.events()] == list(range(40, 0, -1))


def test_the_author_of_an_event_finds_it_at_once() -> None:
    settings = Settings(late_event_probability=1.0, late_event_seconds=3.0)
    engine = engines.engine(host("h1"), settings=settings)
    event = log(engine)
    assert engine.queries.events() == (event,)


@pytest.mark.parametrize(
    ("severity", "code"), [("normal", 9801), ("warning", 9802), ("error", 9803), ("alert", 9804)]
)
def test_an_external_event_is_kept_as_it_was_reported(severity: str, code: int) -> None:
    engine = engines.engine(host("h1"), vm("v"))
    event = log(engine, severity=severity, vm="v", host="nowhere", description="y" * 20000)
    assert (event.code, event.severity, event.origin, event.custom_id) == (code, severity, "tests", 1)
    assert len(event.description) == 10000
    assert (event.vm and event.vm.name, event.host) == ("v", None)
    assert engine.queries.events() == (event,)


def test_origin_and_custom_id_are_unique() -> None:
    engine = engines.engine(host("h1"))
    log(engine)
    refusal = engines.refused(log, engine)
    said = "[=Cannot add External Event. External Event with this custom id already exists.]"
    assert (refusal.http_status, refusal.detail) == (400, said)
    log(engine, custom_id=2)
    log(engine, origin="others")
