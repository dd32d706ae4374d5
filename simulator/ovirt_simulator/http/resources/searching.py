"""Lists that can be searched: what a request's `search`, `case_sensitive` and `max` leave of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ovirt_simulator.http.answers import fault
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.search.errors import SearchFailure
from ovirt_simulator.http.search.known import Known
from ovirt_simulator.http.search.select import Request, select

Record = TypeVar("Record")

#: What the engine adds to every search of users and of groups, so that these cannot be sorted or paged.
_ALWAYS = {"USER": 'usrname != ""', "GROUP": 'grpname != ""'}

#: Of these the engine searches all and then takes `max` of what it found, so a second page is empty.
_CUT_AFTERWARDS = {"DISK"}


def known(call: Call) -> Known:
    """Give what the engine has besides the state's records, once for the request."""
    return call.once("known", lambda: Known(call.queries, call.user_name))


def searched(call: Call, object_name: str, records: Iterable[Record]) -> list[Record]:
    """Give the records that the request asks for, in its order; all when another call follows the list."""
    asked = Request(text="") if call.followed else _asked(call, object_name)
    try:
        found = select(records, object_name, asked, call.queries, known(call))
    except SearchFailure as failure:
        raise fault(failure.status, str(failure)) from None
    return found[: call.number("max")] if object_name in _CUT_AFTERWARDS and not call.followed else found


def _asked(call: Call, object_name: str) -> Request:
    text, always = call.parameter("search") or "", _ALWAYS.get(object_name)
    if always is not None:
        text = f"{text} and {always}" if text else always
    limit = call.number("max")
    if object_name in _CUT_AFTERWARDS and limit is not None and limit >= 0:
        limit = None
    return Request(text=text, case_sensitive=bool(call.flag("case_sensitive")), limit=limit)
