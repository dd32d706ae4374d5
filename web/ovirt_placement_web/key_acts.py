"""Placement keys are set and removed: what would come of it first, then in the store, as by the command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from ovirt_placement.answers.document import listed
from ovirt_placement.answers.keys.change import key_change_lines as change_lines
from ovirt_placement.answers.keys.change import keys_change, objections, read_named, read_records, read_with
from ovirt_placement.answers.keys.key import key_title, written, written_weight
from ovirt_placement.answers.preview import changed_keys
from ovirt_placement.answers.what_if import WhatIfDocument
from ovirt_placement.inventory.stored import with_keys
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.placement_keys import check_text
from ovirt_placement.store.keys import KeyChange, KeyPlace, KeyStore, SetKey
from ovirt_placement.store.opening import opened
from ovirt_placement_web.acting import Asked, Stale, asked_by, carried_out
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.keeper import View
from ovirt_placement_web.key_form import (
    HostsForm,
    KeyForm,
    Meant,
    clusters_named,
    hosts_meant,
    key_meant,
    sent_hosts,
    sent_key,
    state_of,
    touched,
)
from ovirt_placement_web.key_pages import PERMIT, hosts_shown, key_shown
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.site import Site, instant
from ovirt_service.errors import UserError

_MOST_NAMED = 5


class _Looked(NamedTuple):
    """What would come of a change."""

    #: What is set and removed, as the command prints it.
    changes: tuple[str, ...]
    against: str
    foreseen: WhatIfDocument | None
    #: What stands there, for the act to compare.
    was: str


class _Changed(Exception):
    """The keys are not what somebody looked at."""

    def __init__(self, change: KeyChange) -> None:
        super().__init__()
        self.change = change


def _form_of(
    sent: Callable[[Mapping[str, str]], KeyForm | HostsForm], *, gone: bool
) -> Callable[[Request], Awaitable[Response]]:
    """What takes a form of keys, to set them or to have them `gone`."""

    async def endpoint(request: Request) -> Response:
        asked = await asked_by(request)
        return await _answered(request, asked, sent(asked.form), gone=gone)

    return endpoint


set_key, unset_key = _form_of(sent_key, gone=False), _form_of(sent_key, gone=True)
define, unset_hosts = _form_of(sent_hosts, gone=False), _form_of(sent_hosts, gone=True)


async def _answered(request: Request, asked: Asked, form: KeyForm | HostsForm, *, gone: bool) -> Response:
    """What would come of it; or, by the button that stands there, the act."""
    view = asked.site.keeper.view
    if isinstance(form, KeyForm):
        meant = key_meant(form, view.snapshot, gone=gone)
        shown = key_shown(form, view.snapshot)
    else:
        meant = hosts_meant(form, view.snapshot, gone=gone)
        shown = hosts_shown(form, view.snapshot)
    if "do" in asked.form:
        return await _done(asked, meant)
    looked = await asked.site.bounds.plans.run(asked.session, _look, asked.site, view, meant)
    verb = "Remove" if gone else "Set"
    return asked.site.page(
        request, "key_form.html", view=view, **shown | {"looked": looked, "verb": verb, "gone": gone}
    )


def _look(site: Site, view: View, meant: Meant) -> _Looked:
    """By the state that is known and the keys as they are now."""
    with opened(KeyStore, site.config, create=False) as store:
        records, _ = read_records(store)
    before = with_keys(read_with(site.config, view.snapshot, meant.level), records)
    try:
        change = _readable(meant.decide(replace(before, placement_keys=records.keys)))
    except UserError as error:
        raise Refusal(400, f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
    against = objections(before, change)
    document = keys_change(before, records.keys, change, dry_run=False)
    if against:
        return _Looked(tuple(change_lines(document)), against, None, "")
    found = site.made.foreseen(before, changed_keys(before, change))
    return _Looked(
        tuple(_compared(document.before, change_lines(document))),
        "",
        found,
        state_of(change, records.keys),
    )


def _compared(before: Iterable[Any], changes: Iterable[str]) -> Iterable[str]:
    """The changes, and after them what stands there now."""
    yield from changes
    for one in before:
        yield f"stands there now: {one.sentence}: {_figures(one.value, one.weight)}"


async def _done(asked: Asked, meant: Meant) -> Response:
    def carry_out(who: str) -> None:
        config = asked.site.config
        engine = read_named(config, ENGINE_SECONDS, meant.level, *meant.words)
        with opened(KeyStore, config) as store:
            try:
                store.change(
                    partial(_decided, asked, meant, engine),
                    set_by=who,
                    title=partial(key_title, snapshot=engine),
                )
            except _Changed as changed:
                raise Stale(_what_stands(changed.change, store.all_keys(), engine)) from None

    if not meant.clusters:
        raise Refusal(404, "There is no cluster.")
    first, *also = meant.clusters
    return await carried_out(
        asked, first, meant.act, carry_out, permits=(PERMIT,), on=meant.on, back=meant.back, also=also
    )


def _decided(asked: Asked, meant: Meant, engine: Snapshot, keys: tuple[PlacementKey, ...]) -> KeyChange:
    """On the keys as they stand, while nobody else can change them."""
    state = replace(engine, placement_keys=keys)
    try:
        change = _readable(meant.decide(state))
    except UserError as error:
        raise Stale(f"{error}.") from None
    permitted = {one.id for one in meant.clusters}
    for level, resource, _, _ in touched(change):
        if not permitted.issuperset(one.id for one in clusters_named(level, resource, state)):
            raise Stale("it concerns other clusters now than when it was looked at.")
    if asked.form.get("was", "") != state_of(change, keys):
        raise _Changed(change)
    if against := objections(state, change):
        raise Stale(f"{against}.")
    return change


def _readable(change: KeyChange) -> KeyChange:
    """Raise `UserError` for a key whose name is not legible."""
    for key in change.put:
        check_text(key)
    return change


def _what_stands(change: KeyChange, keys: Iterable[SetKey], engine: Snapshot) -> str:
    """What has become of keys since somebody looked at them."""
    places = touched(change)
    there = [one for one in keys if KeyPlace.of(one.key) in places]
    said = [
        f"{key_title(one.key, engine)} is {_figures(one.key.value, one.key.weight)}, set by {one.set_by} at"
        f" {instant(one.set_at)}"
        for one in there[:_MOST_NAMED]
    ]
    now = listed(said) if said else "no such key is set there any more"
    return f"somebody has changed it since you looked at it: {now}. Look at it again."


def _figures(value: float | str, weight: float | None) -> str:
    return written(value) + ("" if weight is None else f" (weight {written_weight(weight)})")
