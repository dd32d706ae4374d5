"""The audit log: read, added to from outside, dismissed and brought back."""

from __future__ import annotations

from datetime import datetime

from werkzeug import Response

from ovirt_simulator.core.entities import Event
from ovirt_simulator.core.external_events import ExternalEvent
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import MALFORMED_ID, fault, incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import event as render
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.search import searched
from ovirt_simulator.http.users import Permit

_MANDATORY = ("origin", "severity", "custom_id", "description")
_SEVERITIES = ("normal", "warning", "error", "alert")


def list_events(call: Call) -> list[str]:
    """Events after `from`, newest first: with `max`, the newest of them and not the next."""
    after = call.number("from") or 0
    events = [event for event in call.queries.events() if event.id > after or after <= 0]
    if call.filtered:
        events = [event for event in events if event.vm is not None and event.vm.id in call.user.vms]
    return [_cached(call, event) for event in searched(call, "events", events)]


def get_event(call: Call, event_id: str) -> str:
    """Give an event, dismissed or not."""
    return render.event(_event(call, event_id), call.links("events", event_id))


def post_event(call: Call) -> Response:
    body = call.body("event")
    if missing := [tag for tag in _MANDATORY if body.text(tag) in (None, "")]:
        raise incomplete("Event", *missing)
    call.need(Permit.INJECT_EXTERNAL_EVENTS)
    event = call.engine.events.add(_external(body), caller=call.caller)
    return answers.document(render.event(event, call.plain_links("events", str(event.id))), 201)


def _event(call: Call, event_id: str) -> Event:
    if not event_id.isdecimal():
        raise fault(400, f'For input string: "{event_id}"', MALFORMED_ID)
    return present(call.queries.event(int(event_id)))


def _cached(call: Call, event: Event) -> str:
    links = call.links("events", str(event.id))
    if call.follow:
        return render.event(event, links)
    return call.cache.get(links.href, (event,), lambda: render.event(event, links))


def _external(body: Body) -> ExternalEvent:
    severity = body.text("severity") or ""
    if severity not in _SEVERITIES:
        raise fault(400, f"'{severity}' is not a member of LogSeverity", "Invalid Enum value")
    return ExternalEvent(
        origin=body.text("origin") or "",
        severity=severity,
        custom_id=body.integer("custom_id") or 0,
        description=body.text("description") or "",
        cluster=body.child_id("cluster"),
        data_center=body.child_id("data_center"),
        host=body.child_id("host"),
        vm=body.child_id("vm"),
        user=body.child_id("user"),
        flood_rate=30 if (flood_rate := body.integer("flood_rate")) is None else flood_rate,
        custom_data=body.text("custom_data"),
        time=_time(body),
        correlation_id=body.text("correlation_id"),
    )


def _time(body: Body) -> datetime | None:
    text = body.text("time")
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise fault(400, f"{text} is not a valid time", "Invalid value") from None
