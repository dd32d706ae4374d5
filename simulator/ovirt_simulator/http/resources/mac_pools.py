"""MAC pools: the default one, and those that were added."""

from __future__ import annotations

from msgspec.structs import replace
from werkzeug import Response

from ovirt_simulator.core.mac_pool import MacPool
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import element, text
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.users import Permit


def list_all(call: Call) -> list[str]:
    return [_render(pool, call.links("macpools", pool.id)) for pool in call.queries.mac_pools()]


def get(call: Call, pool_id: str) -> str:
    return _render(_pool(call, pool_id), call.links("macpools", pool_id))


def post(call: Call) -> Response:
    body = call.body("mac_pool")
    if not body.text("name"):
        raise incomplete("MacPool", "name")
    call.need(Permit.CREATE_MAC_POOL)
    pool = call.engine.mac_pools.add(_read(body, MacPool(id="", name="")), caller=call.caller)
    return answers.document(_render(pool, call.plain_links("macpools", pool.id)), 201)


def put(call: Call, pool_id: str) -> Response:
    """Change what the body names; ranges that it has replace all that there are."""
    pool = _pool(call, pool_id)
    body = call.body("mac_pool")
    call.need(Permit.EDIT_MAC_POOL)
    pool = call.engine.mac_pools.edit(_read(body, pool), caller=call.caller)
    return answers.document(_render(pool, call.plain_links("macpools", pool_id)))


def delete(call: Call, pool_id: str) -> Response:
    _pool(call, pool_id)
    call.need(Permit.DELETE_MAC_POOL)
    call.engine.mac_pools.remove(pool_id, caller=call.caller)
    return done()


def _pool(call: Call, pool_id: str) -> MacPool:
    return present(next((pool for pool in call.queries.mac_pools() if pool.id == pool_id), None))


def _read(body: Body, pool: MacPool) -> MacPool:
    ranges, duplicates, default = (
        body.child("ranges"),
        body.boolean("allow_duplicates"),
        body.boolean("default_pool"),
    )
    listed = None if ranges is None else ranges.children("range")
    return replace(
        pool,
        name=body.text("name") or pool.name,
        description=pool.description if body.text("description") is None else body.text("description"),
        allow_duplicates=pool.allow_duplicates if duplicates is None else duplicates,
        default=pool.default if default is None else default,
        ranges=pool.ranges
        if listed is None
        else tuple((one.text("from") or "", one.text("to") or "") for one in listed),
    )


def _render(pool: MacPool, links: Links) -> str:
    ranges = [element("range", text("from", first), text("to", last)) for first, last in pool.ranges]
    return links.entity(
        "mac_pool",
        pool.id,
        text("name", pool.name),
        text("description", pool.description),
        links.link("permissions", "permissions"),
        text("allow_duplicates", pool.allow_duplicates),
        text("default_pool", pool.default),
        element("ranges", *ranges),
    )
