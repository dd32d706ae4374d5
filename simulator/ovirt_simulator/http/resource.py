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
from ovirt_simulator.http.bodies import Body, Known, Part, is_uuid, known
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
    #: What is answered with, where that is not the resource's own.
    shape: Shape | None = None
    status: int = 200
    #: Whether the command says by itself that the entity is not there.
    checks: bool = False

    @cached_property
    def known(self) -> Known:
        return known(self.takes, self.past)

    def read(self, call: Call, tag: str) -> tuple[Body, Given]:
        """Read the body, and what the command takes from it."""
        body = call.body(tag)
        body.check(self.known)
        if call.once("uuids", lambda: all(map(is_uuid, tuple(call.state.clusters)))):
            body.check_ids()
        given = {name: part.read(body) for name, part in self.takes.items()}
        for element, argument in self.needs.items():
            if given[argument] in (None, ""):
                raise markup.incomplete(self.called or tag, element)
        return body, {name: value for name, value in given.items() if value is not None}


class Action(Change, frozen=True, kw_only=True, dict=True):
    """A POST that begins something: it answers with what it was asked, the outcome and the job."""

    def answer(self, call: Call, ids: Ids, subject: str, tag: str) -> Response:
        """Answer 200 with the job, or the fault inside of what was asked.

        A "complete" action is accepted and begun; its effect shows later.
        """
        body, given = self.read(call, "action")
        if not call.user.may(self.permit):
            return _failed(body, 403, NOT_AUTHORIZED)
        try:
            job: Job = self.run(call, ids, given)
        except Rejected as rejected:
            return _failed(body, rejected.http_status, rejected.detail)
        shown = markup.entity("job", markup.path("jobs", job.id), job.id)
        return _action(body, 200, **{tag: subject, "job": shown, "status": "<status>complete</status>"})


def _failed(body: Body, status: int, detail: str) -> Response:
    return _action(body, status, fault=markup.fault_element(detail), status="<status>failed</status>")


def _action(body: Body, http_status: int, /, **outcome: str) -> Response:
    children = body.elements() | outcome
    return markup.document(
        markup.element("action", *(children[tag] for tag in sorted(children))), http_status
    )


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
    #: Filtered queries are denied: only administrators may ask; or the state does not say what they show.
    admins: bool = False
    unfiltered: bool = False
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
        given = {} if method == "DELETE" else change.read(call, self.shape.tag)[1]
        call.need(change.permit)
        record = change.run(call, ids, given)
        if record is None:
            return markup.document("<action><status>complete</status></action>")
        shape = change.shape or self.shape
        return markup.document(self._rendered(call, ids, record, shape, plain=True), change.status)

    def act(self, call: Call, ids: Ids, name: str) -> Response:
        action, shape = self.actions[name], self.outline or self.shape
        if not action.checks:
            self._one(call, ids)
        href = markup.path(*self.address.strip("/").split("/"), ids[self.id])
        subject = shape.mention(call.links(href, ids, plain=True), ids[self.id])
        return action.answer(call, ids, subject, shape.tag)

    def _found(self, call: Call, ids: Ids) -> Mapping[str, Any]:
        if call.filtered and self.admins:
            raise markup.denied()
        if call.filtered and self.unfiltered:
            raise markup.not_simulated(f"what filtered queries show of {self.address}")
        if call.follow and not self.shape.fields:
            raise markup.not_simulated(f"what can be followed at {self.address}")
        return self.records(call, ids)

    def _one(self, call: Call, ids: Ids) -> Any:
        found = self._found(call, ids).get(ids[self.id])
        if found is None:
            raise self.missing()
        return found

    def _rendered(
        self, call: Call, ids: Ids, record: Any, shape: Shape | None = None, *, plain: bool = False
    ) -> str:
        shape = shape or self.shape
        above = _STEP.sub(
            lambda step: quote(getattr(record, step[1]) if self.home else ids[step[1]], safe=""),
            self.home or self.address,
        )
        href = f"{markup.API}{above}/{quote(shape.id(record), safe='')}"
        return shape.render(call.links(href, ids, plain=plain), record)
