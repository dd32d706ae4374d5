"""Scheduling policies, their filters, weights and balance, and the units that they are made of."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.entities import SchedulingPolicy
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import policy as render
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.users import Permit

_PERMIT = Permit.EDIT_STORAGE_POOL_CONFIGURATION
_POLICIES = "schedulingpolicies"
_UNITS = "schedulingpolicyunits"


def list_policies(call: Call) -> list[str]:
    call.need_admin()
    policies = call.queries.scheduling_policies()
    return [render.scheduling_policy(policy, call.links(_POLICIES, policy.id)) for policy in policies]


def get_policy(call: Call, policy_id: str) -> str:
    return render.scheduling_policy(_policy(call, policy_id), call.links(_POLICIES, policy_id))


def post_policy(call: Call) -> Response:
    """Add a policy; filters, weights and balance in its body are ignored, as the engine ignores them."""
    body = call.body("scheduling_policy")
    name = body.text("name")
    if not name:
        raise incomplete("SchedulingPolicy", "name")
    call.need(_PERMIT)
    policy = call.engine.policies.add(
        name,
        description=body.text("description") or "",
        properties=body.properties("properties"),
        caller=call.caller,
    )
    return answers.document(_populated(call, policy), 201)


def put_policy(call: Call, policy_id: str) -> Response:
    _policy(call, policy_id)
    body = call.body("scheduling_policy")
    call.need(_PERMIT)
    policy = call.engine.policies.edit(
        policy_id,
        name=body.text("name"),
        description=body.text("description"),
        properties=body.properties("properties"),
        caller=call.caller,
    )
    return answers.document(_populated(call, policy))


def delete_policy(call: Call, policy_id: str) -> Response:
    _policy(call, policy_id)
    call.need(_PERMIT)
    call.engine.policies.remove(policy_id, caller=call.caller)
    return done()


def list_filters(call: Call, policy_id: str) -> list[str]:
    filters = _policy(call, policy_id).filters
    return [
        render.policy_filter(part, _part_links(call, policy_id, "filters", part.unit)) for part in filters
    ]


def list_weights(call: Call, policy_id: str) -> list[str]:
    weights = _policy(call, policy_id).weights
    return [
        render.policy_weight(part, _part_links(call, policy_id, "weights", part.unit)) for part in weights
    ]


def list_balances(call: Call, policy_id: str) -> list[str]:
    balance = _policy(call, policy_id).balance
    if balance is None:
        return []
    return [render.policy_balance(balance, _part_links(call, policy_id, "balances", balance))]


def get_filter(call: Call, policy_id: str, unit_id: str) -> str:
    parts = {part.unit: part for part in _policy(call, policy_id).filters}
    return render.policy_filter(present(parts.get(unit_id)), _part_links(call, policy_id, "filters", unit_id))


def get_weight(call: Call, policy_id: str, unit_id: str) -> str:
    parts = {part.unit: part for part in _policy(call, policy_id).weights}
    return render.policy_weight(present(parts.get(unit_id)), _part_links(call, policy_id, "weights", unit_id))


def get_balance(call: Call, policy_id: str, unit_id: str) -> str:
    present(unit_id if _policy(call, policy_id).balance == unit_id else None)
    return render.policy_balance(unit_id, _part_links(call, policy_id, "balances", unit_id))


def post_filter(call: Call, policy_id: str) -> Response:
    """Attach a filter; answered with 200, not 201, like weights and balances."""
    body, unit_id = _part(call, policy_id, "filter", "Filter")
    part = call.engine.policies.add_filter(
        policy_id, unit_id, position=body.integer("position") or 0, caller=call.caller
    )
    links = call.plain_links(_POLICIES, policy_id, "filters", unit_id)
    return answers.document(render.policy_filter(part, links))


def post_weight(call: Call, policy_id: str) -> Response:
    body, unit_id = _part(call, policy_id, "weight", "Weight")
    factor = body.integer("factor")
    part = call.engine.policies.add_weight(
        policy_id, unit_id, factor=1 if factor is None else factor, caller=call.caller
    )
    links = call.plain_links(_POLICIES, policy_id, "weights", unit_id)
    return answers.document(render.policy_weight(part, links))


def post_balance(call: Call, policy_id: str) -> Response:
    _, unit_id = _part(call, policy_id, "balance", "Balance")
    call.engine.policies.set_balance(policy_id, unit_id, caller=call.caller)
    links = call.plain_links(_POLICIES, policy_id, "balances", unit_id)
    return answers.document(render.policy_balance(unit_id, links))


def delete_part(call: Call, policy_id: str, unit_id: str) -> Response:
    """Detach a filter, weight or balance."""
    _policy(call, policy_id)
    call.need(_PERMIT)
    call.engine.policies.remove_unit(policy_id, unit_id, caller=call.caller)
    return done()


def list_units(call: Call) -> list[str]:
    call.need_admin()
    units = call.queries.scheduling_policy_units()
    return [render.scheduling_policy_unit(unit, call.links(_UNITS, unit.id)) for unit in units]


def get_unit(call: Call, unit_id: str) -> str:
    call.need_admin()
    unit = present(call.queries.scheduling_policy_unit(unit_id))
    return render.scheduling_policy_unit(unit, call.links(_UNITS, unit_id))


def delete_unit(call: Call, unit_id: str) -> Response:
    present(call.queries.scheduling_policy_unit(unit_id))
    call.need(_PERMIT)
    call.engine.policies.delete_unit(unit_id)
    return done()


def _part(call: Call, policy_id: str, tag: str, type_name: str) -> tuple[Body, str]:
    """Read the body that attaches a unit to a policy: the body, and the id of the unit."""
    _policy(call, policy_id)
    body = call.body(tag)
    unit_id = body.child_id("scheduling_policy_unit")
    if unit_id is None:
        raise incomplete(type_name, "schedulingPolicyUnit.id")
    call.need(_PERMIT)
    return body, unit_id


def _policy(call: Call, policy_id: str) -> SchedulingPolicy:
    call.need_admin()
    return present(call.queries.scheduling_policy(policy_id))


def _part_links(call: Call, policy_id: str, parts: str, unit_id: str) -> Links:
    return call.links(_POLICIES, policy_id, parts, unit_id)


def _populated(call: Call, policy: SchedulingPolicy) -> str:
    return render.scheduling_policy(policy, call.plain_links(_POLICIES, policy.id))
