"""What is known of users, groups, and of what they did: events and jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ovirt_simulator.core.entities import Event, Job, Reference
from ovirt_simulator.http.search.columns.column import Columns, name, nothing
from ovirt_simulator.http.search.columns.lookup import Lookup
from ovirt_simulator.http.search.records import User


def user(_: Lookup) -> Columns:
    columns: dict[str, Callable[[User], Any]] = {
        "NAME": name,
        "LASTNAME": nothing,
        "USRNAME": lambda user: "" if user.is_group else user.name,
        "LOGIN": lambda user: "" if user.is_group else user.name,
        "USER_AND_DOMAIN": lambda user: "" if user.is_group else f"{user.name}@{user.directory}",
        "DIRECTORY": lambda user: user.directory,
        "DEPARTMENT": nothing,
        "TYPE": lambda user: "group" if user.is_group else "user",
    }
    return columns


def group(_: Lookup) -> Columns:
    return {"NAME": name, "GRPNAME": name}


def _named(subject: Reference | None) -> str:
    """Give the name of what an event is about; the engine has an empty text there, not nothing."""
    return "" if subject is None else subject.name or ""


def _identity(subject: Reference | None) -> str | None:
    return None if subject is None else subject.id


def event(_: Lookup) -> Columns:
    columns: dict[str, Callable[[Event], Any]] = {
        "ID": lambda event: event.id,
        "TYPE": lambda event: event.code,
        "SEVERITY": lambda event: event.severity,
        "MESSAGE": lambda event: event.description,
        "TIME": lambda event: event.time,
        "USRNAME": lambda event: _named(event.user),
        "EVENT_HOST": lambda event: _named(event.host),
        "EVENT_VM": lambda event: _named(event.vm),
        "EVENT_DATACENTER": lambda event: _named(event.data_center),
        "EVENT_TEMPLATE": nothing,
        "EVENT_STORAGE": nothing,
        "EVENT_VOLUME": nothing,
        "_EVENT_HOST_ID": lambda event: _identity(event.host),
        "_EVENT_VM_ID": lambda event: _identity(event.vm),
        "_EVENT_DATACENTER_ID": lambda event: _identity(event.data_center),
        "USRID": lambda event: _identity(event.user),
        "CORRELATION_ID": lambda event: event.correlation_id,
        "ORIGIN": lambda event: event.origin,
        "CUSTOM_EVENT_ID": lambda event: event.custom_id,
        "DELETED": lambda event: event.dismissed,
    }
    return columns


def job(_: Lookup) -> Columns:
    columns: dict[str, Callable[[Job], Any]] = {
        "CORRELATION_ID": lambda job: job.correlation_id,
        "START_TIME": lambda job: job.started,
    }
    return columns
