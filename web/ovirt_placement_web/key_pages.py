"""The views of placement keys: all that are set, those along the hierarchy of a VM, and the forms."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from ovirt_placement.answers.keys import listing
from ovirt_placement.answers.keys.compiled import key_levels
from ovirt_placement.answers.keys.key import written, written_weight
from ovirt_placement.answers.keys.listing import SetKey
from ovirt_placement.answers.question import Table
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.placement_keys import NODE, SETTABLE
from ovirt_placement.store.keys import KeyStore
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.keeper import View
from ovirt_placement_web.key_form import (
    SETTER_OF,
    HostsForm,
    KeyForm,
    clusters_named,
    hosts_filled,
    key_filled,
)
from ovirt_placement_web.pages import Shown, found, viewed
from ovirt_placement_web.site import Site
from ovirt_placement_web.stored import stored
from ovirt_service.errors import UserError

#: A key changes where VMs are placed, as the policy of a cluster does.
PERMIT = "edit_cluster_configuration"
#: What levels are called in oVirt.
_CALLED = {
    NODE: "Host",
    "server": "VM",
    "cluster": "Cluster",
    "image": "Template",
    "vdc": "Data center",
}


def _called(level: str) -> str:
    """A level with the word that commands and files have for it."""
    word = _CALLED.get(level, level.replace("_", " ").capitalize())
    return word if word.lower() == level else f"{word} ({level})"


LEVELS = {level: _called(level) for level in SETTABLE}


@viewed()
def keys(site: Site, request: Request, view: View) -> Shown:
    """All that are set, by whom and when."""
    error, answer = "", None
    try:
        answer = site.questions.keys(view)
    except UserError as failure:
        error = str(failure)
    listed = () if answer is None else answer.keys
    may = _may(site, request, view)
    table = listing.keys_table(answer) if answer else Table((), ())
    return "keys.html", {
        "part": "Placement keys",
        "headers": table.headers,
        "rows": list(zip(table.rows, map(_address, listed), strict=True)),
        "error": error,
        "editable": [one for one in view.snapshot.clusters if one.id in may],
        "cluster_of": _cluster_of(view.snapshot, listed),
    }


@viewed()
def of_vm(site: Site, request: Request, view: View) -> Shown:
    """What stands on each level of a VM, which key is in force, and which it overrides."""
    vm = found(request, "VM", view.snapshot.vms)
    levels = key_levels(view.snapshot, vm)
    may = _may(site, request, view)
    return "vm_keys.html", {
        "part": "Virtual machines",
        "crumbs": (("Virtual machines", "/vms"), (vm.name, f"/vm/{vm.id}"), ("Placement keys", "")),
        "called": LEVELS,
        "vm": vm,
        "levels": [
            (
                one,
                one.level in SETTABLE
                and all(each.id in may for each in clusters_named(one.level, one.resource.id, view.snapshot)),
            )
            for one in levels
        ],
        "setters": SETTER_OF,
        "written": written,
        "written_weight": written_weight,
    }


@viewed("level", "on", "as", "name")
def key_form(site: Site, request: Request, view: View) -> Shown:
    """The form of a key on one object, filled with what stands there."""
    asked = request.query_params
    level, setter = asked.get("level", "cluster"), asked.get("as", "operator")
    if level not in SETTABLE or setter not in SETTER_OF.values():
        raise Refusal(400, "There is no such level or class of keys.")
    form = KeyForm(level, asked.get("on", ""), setter, asked.get("name", ""))
    standing = _standing(site)
    return "key_form.html", key_shown(key_filled(form, standing, view.snapshot), view.snapshot)


@viewed("cluster", "name")
def hosts_form(site: Site, request: Request, view: View) -> Shown:
    """The form of a key of all hosts of a cluster, filled with what stands there."""
    asked = request.query_params
    form = HostsForm(asked.get("cluster", ""), asked.get("name", ""))
    if form.cluster not in view.snapshot.cluster_by_id:
        raise Refusal(404, "There is no such cluster.")
    standing = _standing(site)
    return "key_form.html", hosts_shown(hosts_filled(form, standing, view.snapshot), view.snapshot)


def key_shown(form: KeyForm, snapshot: Snapshot) -> dict[str, Any]:
    """What the form of a key on one object shows."""
    return {
        "part": "Placement keys",
        "crumbs": _CRUMBS,
        "form": form,
        "cluster": None,
        "levels": LEVELS,
        "setters": tuple(SETTER_OF.values()),
        "address": "/keys/set",
        "remove": "/keys/unset",
        **_NOT_LOOKED,
    }


def hosts_shown(form: HostsForm, snapshot: Snapshot) -> dict[str, Any]:
    """What the form of a key of all hosts of a cluster shows."""
    return {
        "part": "Placement keys",
        "crumbs": _CRUMBS,
        "form": form,
        "cluster": snapshot.cluster_by_id[form.cluster],
        "address": "/keys/hosts",
        "remove": "/keys/hosts/unset",
        **_NOT_LOOKED,
    }


_CRUMBS = (("Placement keys", "/keys"), ("Set", ""))
_NOT_LOOKED: dict[str, Any] = {"looked": None, "verb": "Set", "gone": False, "permit": PERMIT}


def _may(site: Site, request: Request, view: View) -> frozenset[str]:
    """The clusters whose placements this person may change, as far as was known last."""
    session = site.session(request, use=False)
    if session is None:
        return frozenset()
    return frozenset(
        one.id for one in view.snapshot.clusters if session.rights.may(PERMIT, one.id, view.snapshot)
    )


def _standing(site: Site) -> tuple[PlacementKey, ...]:
    """The keys that are set at this moment."""
    return tuple(one.key for one in stored(KeyStore, site.config, KeyStore.all_keys))


def _address(key: SetKey) -> dict[str, str]:
    """What names a key to its form."""
    return {
        "level": key.level,
        "on": key.resource.id,
        "as": SETTER_OF[key.key_class],
        "name": key.name,
    }


def _cluster_of(snapshot: Snapshot, listed: tuple[SetKey, ...]) -> dict[str, str]:
    """By host with a key the cluster that it belongs to."""
    hosts = snapshot.host_by_id
    return {
        key.resource.id: hosts[key.resource.id].cluster
        for key in listed
        if key.level == NODE and key.resource.id in hosts
    }
