"""Storage domains, by themselves and as data centers have them attached."""

from __future__ import annotations

from collections.abc import Callable

from werkzeug import Response

from ovirt_simulator.core.entities import Job
from ovirt_simulator.core.storage_domain import StorageDomain
from ovirt_simulator.http import answers, markup
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import storage as render
from ovirt_simulator.http.resources.actions import act
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.resources.searching import known, searched
from ovirt_simulator.http.users import Permit


def list_all(call: Call) -> list[str]:
    found = searched(call, "STORAGE", known(call).storage)
    return [_render(call, one, call.links("storagedomains", one.id)) for one in found]


def get(call: Call, domain_id: str) -> str:
    return _render(call, _domain(call, domain_id), call.links("storagedomains", domain_id))


def put(call: Call, domain_id: str) -> Response:
    """Change name and description."""
    _domain(call, domain_id)
    body = call.body("storage_domain")
    call.need(Permit.EDIT_STORAGE_DOMAIN_CONFIGURATION)
    domain = call.engine.storage_domains.edit(
        domain_id, body.text("name"), body.text("description"), caller=call.caller
    )
    return answers.document(_render(call, domain, call.plain_links("storagedomains", domain_id)))


def list_of_data_center(call: Call, data_center_id: str) -> list[str]:
    present(call.queries.data_center(data_center_id))
    found = [one for one in known(call).storage if one.data_center == data_center_id]
    return [_attached(call, one) for one in found]


def get_of_data_center(call: Call, data_center_id: str, domain_id: str) -> str:
    domain = _domain(call, domain_id)
    return _attached(call, present(domain if domain.data_center == data_center_id else None))


def activate(call: Call, data_center_id: str, domain_id: str) -> Response:
    return _act(call, data_center_id, domain_id, call.engine.storage_domains.activate)


def deactivate(call: Call, data_center_id: str, domain_id: str) -> Response:
    return _act(call, data_center_id, domain_id, call.engine.storage_domains.deactivate)


def _act(call: Call, data_center_id: str, domain_id: str, command: Callable[..., Job]) -> Response:
    href = markup.path("datacenters", data_center_id, "storagedomains", domain_id)
    subject = markup.entity("storage_domain", href, domain_id)
    permit = Permit.MANIPULATE_STORAGE_DOMAIN
    return act(call, permit, "storage_domain", subject, lambda _: command(domain_id, caller=call.caller))


def _attached(call: Call, domain: StorageDomain) -> str:
    links = call.links("datacenters", domain.data_center, "storagedomains", domain.id)
    return _render(call, domain, links, attached=True)


def _render(call: Call, domain: StorageDomain, links: Links, *, attached: bool = False) -> str:
    return render.storage_domain(domain, links, known(call).space(domain), attached=attached)


def _domain(call: Call, domain_id: str) -> StorageDomain:
    return present(next((one for one in known(call).storage if one.id == domain_id), None))
