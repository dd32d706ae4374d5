"""VM pools: listed, made, enlarged and removed; VMs that leave them."""

from __future__ import annotations

from msgspec.structs import replace
from werkzeug import Response

from ovirt_simulator.core.vm_pool import VmPool
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import fault, incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import element, text
from ovirt_simulator.http.render.vm import outline
from ovirt_simulator.http.resources.actions import act, done
from ovirt_simulator.http.resources.find import named, present
from ovirt_simulator.http.resources.searching import searched
from ovirt_simulator.http.resources.vms import latest_first
from ovirt_simulator.http.users import Permit

LINKS = {"permissions": "permissions"}
_TYPES = ("automatic", "manual")


def list_all(call: Call) -> list[str]:
    """Give all pools; users whose queries are filtered see none."""
    found = searched(call, "POOL", _visible(call))
    return [_render(call, pool, call.links("vmpools", pool.id)) for pool in found]


def get(call: Call, pool_id: str) -> str:
    return _render(call, _pool(call, pool_id), call.links("vmpools", pool_id))


def post(call: Call) -> Response:
    """Make a pool of one VM, or of as many as the body says, of a template and in a cluster by id or name."""
    body = call.body("vm_pool")
    template, cluster = body.child("template"), body.child("cluster")
    missing = [] if body.text("name") else ["name"]
    missing += ["template.id|name"] if template is None else []
    missing += ["cluster.id|name"] if cluster is None else []
    if missing or template is None or cluster is None:
        raise incomplete("VmPool", *missing)
    plain = VmPool(
        id="",
        name="",
        cluster=named(cluster, call.queries.clusters()),
        template=named(template, latest_first(call)),
    )
    call.need(Permit.CREATE_VM_POOL)
    size = body.integer("size")
    pool = call.engine.pools.add(_read(body, plain), 1 if size is None else size, caller=call.caller)
    return _shown(call, pool, 201)


def put(call: Call, pool_id: str) -> Response:
    pool = _pool(call, pool_id)
    body = call.body("vm_pool")
    call.need(Permit.EDIT_VM_POOL_CONFIGURATION)
    return _shown(
        call, call.engine.pools.edit(_read(body, pool), body.integer("size"), caller=call.caller), 200
    )


def delete(call: Call, pool_id: str) -> Response:
    _pool(call, pool_id)
    call.need(Permit.DELETE_VM_POOL)
    call.engine.pools.remove(pool_id, caller=call.caller)
    return done()


def detach(call: Call, vm_id: str) -> Response:
    """Take a VM out of its pool."""
    subject = outline(vm_id, call.plain_links("vms", vm_id))
    permit = Permit.EDIT_VM_POOL_CONFIGURATION
    return act(call, permit, "vm", subject, lambda _: call.engine.pools.detach(vm_id, caller=call.caller))


def _pool(call: Call, pool_id: str) -> VmPool:
    return present(next((pool for pool in _visible(call) if pool.id == pool_id), None))


def _visible(call: Call) -> tuple[VmPool, ...]:
    return () if call.filtered else call.queries.vm_pools()


def _read(body: Body, pool: VmPool) -> VmPool:
    kind = body.text("type")
    if kind is not None and kind not in _TYPES:
        raise fault(400, f"'{kind}' is not a member of VmPoolType", "Invalid Enum value")
    given = {
        "name": body.text("name"),
        "description": body.text("description"),
        "comment": body.text("comment"),
        "type": kind,
        "stateful": body.boolean("stateful"),
        "prestarted": body.integer("prestarted_vms"),
        "max_user_vms": body.integer("max_user_vms"),
    }
    return replace(pool, **{name: value for name, value in given.items() if value is not None})


def _shown(call: Call, pool: VmPool, status: int) -> Response:
    return answers.document(_render(call, pool, call.plain_links("vmpools", pool.id)), status)


def _render(call: Call, pool: VmPool, links: Links) -> str:
    size = sum(vm.pool == pool.id for vm in call.queries.vms())
    return links.entity(
        "vm_pool",
        pool.id,
        links.actions("allocatevm"),
        text("name", pool.name),
        text("description", pool.description),
        text("comment", pool.comment),
        links.links(LINKS),
        text("auto_storage_select", False),
        text("max_user_vms", pool.max_user_vms),
        text("prestarted_vms", pool.prestarted),
        text("size", size),
        text("stateful", pool.stateful),
        text("type", pool.type),
        text("use_latest_template_version", False),
        element("vm"),
        links.reference("cluster", "clusters", pool.cluster),
        links.reference("template", "templates", pool.template),
    )
