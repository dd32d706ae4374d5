"""What a resource of the API is: entities at an address, how they are shown, and what can be done to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeAlias
from urllib.parse import quote

import msgspec
from werkzeug import Response

from ovirt_simulator.core.entities import Job
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.http import markup
from ovirt_simulator.http.bodies import Known, Part, known
from ovirt_simulator.http.call import NOT_AUTHORIZED, Call
from ovirt_simulator.http.fields import Shape
from ovirt_simulator.http.search import searched
from ovirt_simulator.http.sso import Permit

#: The ids in an address, by their names there.
Ids: TypeAlias = "Mapping[str, str]"
#: What a command takes from a body, by the names of its arguments; what the body has not is not there.
Given: TypeAlias = "dict[str, Any]"
#: Carries a command out: gives the record to show, or None for nothing but its end; an action's job.
Run: TypeAlias = "Callable[[Call, Ids, Given], Any]"
#: The records that are at an address, by id. Raises `Refusal` where something above them is not there.
Records: TypeAlias = "Callable[[Call, Ids], Mapping[str, Any]]"


_STEP = re.compile("<(.*?)>")


class Change(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A command that a request carries out."""

    run: Run
    permit: Permit
    takes: Mapping[str, Part] = {}
    #: Elements that the engine takes and that count for nothing here.
    past: str = ""
    #: What must be there, with the argument that has it, and what the engine calls the whole.
    needs: Mapping[str, str] = {}
    called: str = ""
    status: int = 200
    #: Whether the command says by itself that the entity is not there.
    checks: bool = False

    @cached_property
    def known(self) -> Known:
        return known(self.takes, self.past)

    def read(self, call: Call, tag: str) -> Given:
        """Read what the command takes from the body."""
        body = call.body(tag)
        body.check(self.known)
        given = {name: part.read(body) for name, part in self.takes.items()}
        for element, argument in self.needs.items():
            if given[argument] in (None, ""):
                raise markup.incomplete(self.called or tag, element)
        return {name: value for name, value in given.items() if value is not None}


class Action(Change, frozen=True, kw_only=True, dict=True):
    """A POST that begins something: it answers with the outcome and the job."""

    def answer(self, call: Call, ids: Ids, subject: str) -> Response:
        """Answer 200 with the job, or the fault.

        A "complete" action is accepted and begun; its effect shows later.
        """
        given = self.read(call, "action")
        if not call.user.may(self.permit):
            return _failed(403, NOT_AUTHORIZED)
        try:
            job: Job = self.run(call, ids, given)
        except Rejected as rejected:
            return _failed(rejected.http_status, rejected.detail)
        shown = markup.entity("job", markup.path("jobs", job.id), job.id)
        return markup.document(markup.element("action", shown, "<status>complete</status>", subject))


def _failed(status: int, detail: str) -> Response:
    fault = markup.fault_element(detail)
    return markup.document(markup.element("action", fault, "<status>failed</status>"), status)


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A collection, with its entities at `ADDRESS/<id>` and their actions at `ADDRESS/<id>/NAME`."""

    address: str
    shape: Shape
    records: Records
    #: What its entities are called in addresses: `<vm_id>`.
    id: str = "entity_id"
    #: The root element of the list, where it is not the last step of the address.
    root: str = ""
    #: The collection that has an entity's own address, where that is another one: `/clusters/<cluster>/x`.
    home: str = ""
    #: What searches know the collection by; empty where it has none.
    search: str = ""
    by_name: bool = False
    listed: bool = True
    #: Whether an entity can be read by itself.
    single: bool = True
    #: Filtered queries are denied: only administrators may ask.
    admins: bool = False
    #: What is said of an entity that is not there, where it is not 404 with nothing in it.
    missing: Callable[[], markup.Refusal] = markup.absent
    post: Change | None = None
    put: Change | None = None
    delete: Change | None = None
    actions: Mapping[str, Action] = {}
    #: How actions mention the entity.
    outline: Shape | None = None

    def list(self, call: Call, ids: Ids) -> list[str]:
        """Render all, or what a search finds."""
        found = list(self._found(call, ids).values())
        if self.by_name:
            found.sort(key=lambda record: record.name)
        if self.search:
            found = searched(call, self.search, found)
        return [self._rendered(call, ids, record) for record in found]

    def get(self, call: Call, ids: Ids) -> str:
        return self._rendered(call, ids, self._one(call, ids))

    def carry_out(self, call: Call, ids: Ids, method: str, change: Change) -> Response:
        """Carry out a POST, PUT or DELETE."""
        if not change.checks:
            if method == "POST":
                self._found(call, ids)
            else:
                self._one(call, ids)
        given = {} if method == "DELETE" else change.read(call, self.shape.tag)
        call.need(change.permit)
        record = change.run(call, ids, given)
        if record is None:
            return markup.document("<action><status>complete</status></action>")
        return markup.document(self._rendered(call, ids, record, plain=True), change.status)

    def act(self, call: Call, ids: Ids, name: str) -> Response:
        action, shape = self.actions[name], self.outline or self.shape
        if not action.checks:
            self._one(call, ids)
        href = markup.path(*self.address.strip("/").split("/"), ids[self.id])
        subject = shape.mention(call.links(href, ids, plain=True), ids[self.id])
        return action.answer(call, ids, subject)

    def _found(self, call: Call, ids: Ids) -> Mapping[str, Any]:
        if call.filtered and self.admins:
            raise markup.denied()
        if call.follow and not self.shape.fields:
            raise markup.not_simulated(f"what can be followed at {self.address}")
        return self.records(call, ids)

    def _one(self, call: Call, ids: Ids) -> Any:
        found = self._found(call, ids).get(ids[self.id])
        if found is None:
            raise self.missing()
        return found

    def _rendered(self, call: Call, ids: Ids, record: Any, *, plain: bool = False) -> str:
        above = _STEP.sub(
            lambda step: quote(getattr(record, step[1]) if self.home else ids[step[1]], safe=""),
            self.home or self.address,
        )
        href = f"{markup.API}{above}/{quote(self.shape.id(record), safe='')}"
        return self.shape.render(call.links(href, ids, plain=plain), record)
