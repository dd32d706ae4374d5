"""Placement keys: all that are set, those of a VM level by level, and the forms that set and remove them."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from ovirt_placement.answers.document import listed
from ovirt_placement.answers.keys import change as changes
from ovirt_placement.answers.keys import key_title
from ovirt_placement.answers.keys.compiled import key_levels
from ovirt_placement.answers.plans.what_if import changed_keys
from ovirt_placement.inventory.stored import with_keys
from ovirt_placement.model import Cluster, PlacementKey, Snapshot
from ovirt_placement.model.names import clusters_of, find_place, find_resource, resource_word
from ovirt_placement.model.record import NODE, SERVER, SETTABLE, KeyPlace, check_text, figures, written
from ovirt_placement.store.keys import KeyChange, KeyRecords, KeyStore, SetKey
from ovirt_placement.store.sql.access import opened, stored
from ovirt_placement_web.bounds import Refusal, sentence
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.site import check_length, instant, words_of
from ovirt_placement_web.views.endpoints import Act, Asked, Preview, Shown, Stale, acted, digest, viewed
from ovirt_placement_web.views.vm import known
from ovirt_service.errors import UserError
from ovirt_service.text import escaped

_MOST_NAMED = 5
#: A key changes where VMs are placed, as the policy of a cluster does.
_PERMIT = "edit_cluster_configuration"
_SETTER_OF = {key_class: setter for setter, key_class in changes.SETTERS.items()}


@viewed("/keys")
def keys(asked: Asked) -> Shown:
    editable = [one for one in asked.snapshot.clusters if _may(asked, one)]
    found = known(lambda: asked.questions.ask("keys list"))
    return "keys.html", {"editable": editable, "found": found, "setters": _SETTER_OF}


@viewed("/vm/{name}/keys")
def of_vm(asked: Asked) -> Shown:
    """What stands on each level of a VM, which key is in force, and which it overrides."""
    vm, snapshot = asked.named("VM", asked.snapshot.vms), asked.snapshot
    levels = [
        (one, one.level in SETTABLE and _may(asked, *_clusters_named(one.level, one.resource.id, snapshot)))
        for one in key_levels(snapshot, vm)
    ]
    return "vm_keys.html", {"vm": vm, "settable": SETTABLE, "levels": levels, "setters": _SETTER_OF}


@viewed("/keys/set", query=("level", "on", "as", "name"))
def key_form(asked: Asked) -> Shown:
    snapshot = asked.snapshot
    form = {name: asked.word(name) for name in ("on", "name", "value", "weight")}
    form |= {"level": asked.word("level", "cluster"), "as": asked.word("as", "operator")}
    _check_choices(form)
    standing, place = _standing(asked), None
    with suppress(UserError):
        place = find_place((form["level"], form["on"]), standing, snapshot) if form["on"] else None
    if place is not None and place.resource is not None:
        form["on"] = _legible(place.level, place.resource, snapshot)
        there = (place.level, place.resource, changes.SETTERS[form["as"]], form["name"])
        for key in standing:
            if key.place == there:
                form |= {"value": written(key.value), "weight": written(key.weight)}
    return _shown(form)


@viewed("/keys/hosts", query=("cluster", "name"))
def hosts_form(asked: Asked) -> Shown:
    snapshot, name = asked.snapshot, asked.word("name")
    cluster = _cluster(asked, asked.word("cluster"))
    there = {key.resource: key for key in _standing(asked) if key.level == NODE and key.name == name}
    lines = [
        f"{_legible(NODE, host.id, snapshot)}={written(there[host.id].value) if host.id in there else ''}"
        for host in snapshot.hosts_of_cluster.get(cluster.id, ())
    ]
    sticky = next((key.weight for key in there.values() if key.sticky), None)
    form = {"name": name, "values": "\n".join(lines), "sticky": written(sticky)}
    return _shown(form, cluster)


class _Wanted(NamedTuple):
    """A change of keys as asked for, and how it is decided on the keys as they stand."""

    asked: Asked
    level: str
    #: What names the object, if it is one.
    words: tuple[str, ...]
    #: Those whose placements it changes.
    clusters: tuple[Cluster, ...]
    meant: Callable[[Snapshot], KeyChange]

    def decide(self, state: Snapshot) -> KeyChange:
        """Raises `UserError`, also for a key whose name is not legible."""
        change = self.meant(state)
        for key in change.put:
            check_text(key.name, key.value)
        return change

    def foresee(self) -> Preview:
        """By the state that is known and the keys as they are now."""
        site = self.asked.site
        records = stored(KeyStore, site.config, KeyStore.records, KeyRecords(0))
        before = with_keys(changes.read_with(site.config, self.asked.snapshot, (self.level,)), records)
        try:
            change, against = changes.decided(before, records.placement_keys, self.decide)
        except UserError as error:
            raise Refusal(400, sentence(error)) from None
        document = changes.keys_change(before, records.placement_keys, change, dry_run=False)
        lines = tuple(changes.key_change_lines(document))
        if against:
            return Preview(None, (against,), changes=lines)
        foreseen = site.made.foreseen(before, changed_keys(before, change))
        there = (f"{one.sentence}: {figures(one.value, one.weight)}" for one in document.before)
        lines += tuple(f"stands there now: {one}" for one in there)
        return Preview(foreseen, changes=lines, was=_state_of(change, records.placement_keys))

    def carry_out(self, who: str) -> None:
        engine = changes.read_named(self.asked.config, ENGINE_SECONDS, self.level, *self.words)
        with opened(KeyStore, self.asked.config) as store:
            try:
                title = partial(key_title, snapshot=engine)
                store.change(partial(self._decide_still, engine), set_by=who, title=title)
            except _Changed as changed:
                raise Stale(_what_stands(changed.args[0], store.all_keys(), engine)) from None

    def _decide_still(self, engine: Snapshot, standing: tuple[PlacementKey, ...]) -> KeyChange:
        """On the keys as they stand, while no other user can change them."""
        try:
            change, against = changes.decided(engine, standing, self.decide)
        except UserError as error:
            raise Stale(str(error)) from None
        permitted = {one.id for one in self.clusters}
        for level, resource, _, _ in _touched(change):
            if not permitted.issuperset(one.id for one in _clusters_named(level, resource, engine)):
                raise Stale("it concerns other clusters now than when it was looked at")
        if self.asked.form.get("was", "") != _state_of(change, standing):
            raise _Changed(change)
        if against:
            raise Stale(against)
        return change

    def act(self, name: str, on: str, back: str, form: Shown) -> Act:
        if not self.clusters:
            raise self.asked.absent("There is no cluster.")
        return Act(name, self.clusters, self.carry_out, back, (_PERMIT,), on, form=form, foresee=self.foresee)


class _Changed(Exception):
    """The keys are not what they were when shown; the change is its argument."""


@acted("/keys/set")
def set_key(asked: Asked) -> Act:
    form, gone = asked.fields, asked.removes
    _check_choices(form)
    level, on, setter, name = form["level"], form["on"], form["as"], form["name"]

    def decide(state: Snapshot) -> KeyChange:
        if gone:
            return changes.to_unset(
                state, name, (find_place((level, on), state.placement_keys, state),), setter
            )
        return changes.to_set(state, name, form["value"], form["weight"] or None, (level, on), setter)

    back = "/keys"
    if level in (SERVER, NODE):
        with suppress(UserError):
            resource = find_resource(level, on, asked.snapshot)
            back = f"/vm/{resource}/keys" if level == SERVER else f"/host/{resource}"
    clusters = _clusters_named(level, on, asked.snapshot)
    wanted = _Wanted(asked, level, () if gone else (on,), clusters, decide)
    at = f"{setter}'s placement key {name} on {level} {on}"
    return wanted.act("key unset" if gone else "key set", at, back, _shown(form, gone=gone))


@acted("/keys/hosts")
def define(asked: Asked) -> Act:
    cluster, gone = _cluster(asked, asked.form.get("cluster", "")), asked.removes
    form = asked.fields
    check_length("Name", form["name"])
    check_length("Weight", form["sticky"])

    def decide(state: Snapshot) -> KeyChange:
        if gone:
            return changes.to_unset(state, form["name"], changes.hosts_of(state, cluster.id), "operator")
        values = words_of(form["values"])
        return changes.to_define(state, form["name"], cluster.id, values, sticky=form["sticky"] or None)

    at = f"placement key {form['name']} of the hosts of cluster {cluster.name} ({cluster.id})"
    act = "key unset of hosts" if gone else "key define"
    return _Wanted(asked, NODE, (), (cluster,), decide).act(
        act, at, "/keys", _shown(form, cluster, gone=gone)
    )


def _what_stands(change: KeyChange, standing: Iterable[SetKey], engine: Snapshot) -> str:
    places = _touched(change)
    there = [one for one in standing if one.key.place in places]
    said = [
        f"{key_title(one.key, engine)} is {figures(one.key.value, one.key.weight)}, set by {one.set_by} at"
        f" {instant(one.set_at)}"
        for one in there[:_MOST_NAMED]
    ]
    now = listed(said) if said else "no such key is set there any more"
    return f"it has changed since you looked at it: {now}. Look at it again"


def _state_of(change: KeyChange, standing: Iterable[PlacementKey]) -> str:
    """Another text once anything stands otherwise where a change is to be made."""
    places = _touched(change)
    there = sorted((key for key in standing if key.place in places), key=attrgetter("place"))
    return digest((sorted(places), there))


def _touched(change: KeyChange) -> frozenset[KeyPlace]:
    return frozenset(key.place for key in (*change.put, *change.remove))


def _shown(form: Mapping[str, str], cluster: Cluster | None = None, *, gone: bool = False) -> Shown:
    shown = {
        "form": form,
        "cluster": cluster,
        "gone": gone,
        "levels": SETTABLE,
        "setters": tuple(changes.SETTERS),
    }
    return "key_form.html", shown


def _may(asked: Asked, *clusters: Cluster) -> bool:
    """Whether this person may change the placements of all of these, as far as was known last."""
    return all(asked.session.rights.may(_PERMIT, one.id, asked.snapshot) for one in clusters)


def _standing(asked: Asked) -> tuple[PlacementKey, ...]:
    return tuple(one.key for one in asked.site.past.read(KeyStore, KeyStore.all_keys))


def _check_choices(form: Mapping[str, str]) -> None:
    if form["level"] not in SETTABLE or form["as"] not in changes.SETTERS:
        raise Refusal(400, "There is no such level or class of keys.")
    for name in ("on", "name", "value", "weight"):
        check_length(name, form[name])


def _cluster(asked: Asked, identity: str) -> Cluster:
    if found := asked.snapshot.cluster_by_id.get(identity):
        return found
    raise asked.absent("There is no such cluster.")


def _clusters_named(level: str, word: str, snapshot: Snapshot) -> tuple[Cluster, ...]:
    """The clusters whose placements a key there may change; all, where it is not known what is meant."""
    try:
        return clusters_of(level, find_resource(level, word, snapshot), snapshot)
    except UserError:
        return snapshot.clusters


def _legible(level: str, identity: str, snapshot: Snapshot) -> str:
    """A name that a form can show and send back; else the id."""
    word = resource_word(level, identity, snapshot)
    return word if word == escaped(word).strip() and "\n" not in word else identity
