"""Fence agents of hosts: listed, added, changed and removed."""

from __future__ import annotations

from msgspec.structs import replace
from werkzeug import Response

from ovirt_simulator.core.fence_agent import FenceAgent
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import element, text
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.resources.hosts import visible_host
from ovirt_simulator.http.users import Permit

_MANDATORY = ("address", "order", "type", "username", "password")


def list_agents(call: Call, host_id: str) -> list[str]:
    visible_host(call, host_id)
    found = [agent for agent in call.queries.fence_agents() if agent.host == host_id]
    return [_render(agent, call.links("hosts", host_id, "fenceagents", agent.id)) for agent in found]


def get_agent(call: Call, host_id: str, agent_id: str) -> str:
    agent = _agent(call, host_id, agent_id)
    return _render(agent, call.links("hosts", host_id, "fenceagents", agent_id))


def post_agent(call: Call, host_id: str) -> Response:
    visible_host(call, host_id)
    body = call.body("agent")
    missing = [name for name in _MANDATORY if not body.text(name)]
    if missing:
        raise incomplete("Agent", *missing)
    call.need(Permit.EDIT_HOST_CONFIGURATION)
    plain = FenceAgent(id="", host=host_id, address="", type="", user="", order=0)
    return _shown(call, call.engine.fencing.add(_read(body, plain)), 201)


def put_agent(call: Call, host_id: str, agent_id: str) -> Response:
    """Change what the body names; options that it has replace all that there are."""
    agent = _agent(call, host_id, agent_id)
    body = call.body("agent")
    call.need(Permit.EDIT_HOST_CONFIGURATION)
    return _shown(call, call.engine.fencing.edit(_read(body, agent)), 200)


def delete_agent(call: Call, host_id: str, agent_id: str) -> Response:
    _agent(call, host_id, agent_id)
    call.need(Permit.EDIT_HOST_CONFIGURATION)
    call.engine.fencing.remove(agent_id)
    return done()


def _agent(call: Call, host_id: str, agent_id: str) -> FenceAgent:
    visible_host(call, host_id)
    found = (agent for agent in call.queries.fence_agents() if agent.host == host_id)
    return present(next((agent for agent in found if agent.id == agent_id), None))


def _read(body: Body, agent: FenceAgent) -> FenceAgent:
    options = body.child("options")
    listed = None if options is None else options.children("option")
    given = {
        "address": body.text("address"),
        "type": body.text("type"),
        "user": body.text("username"),
        "order": body.integer("order"),
        "port": body.integer("port"),
        "encrypt_options": body.boolean("encrypt_options"),
        "options": None
        if listed is None
        else {option.text("name") or "": option.text("value") or "" for option in listed},
    }
    return replace(agent, **{name: value for name, value in given.items() if value is not None})


def _shown(call: Call, agent: FenceAgent, status: int) -> Response:
    links = call.plain_links("hosts", agent.host, "fenceagents", agent.id)
    return answers.document(_render(agent, links), status)


def _render(agent: FenceAgent, links: Links) -> str:
    options = [
        element("option", text("name", name), text("value", value)) for name, value in agent.options.items()
    ]
    return links.entity(
        "agent",
        agent.id,
        text("address", agent.address),
        text("encrypt_options", agent.encrypt_options),
        element("options", *options) if options else "",
        text("order", agent.order),
        text("port", agent.port),
        text("type", agent.type),
        text("username", agent.user),
        links.reference("host", "hosts", agent.host),
    )
