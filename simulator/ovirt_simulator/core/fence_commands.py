"""Fence agents of hosts: added, changed and removed. No event reports it.

Source: the engine's AddFenceAgentCommand, UpdateFenceAgentCommand and RemoveFenceAgentCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import host_refusals
from .backend import Backend
from .fence_agent import TYPES, FenceAgent
from .rejections import existing

_PORT = "port"


class FenceCommands:
    """Commands on fence agents; all raise `NotFound`, and `put` also `Rejected`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, agent: FenceAgent) -> FenceAgent:
        """Add an agent, whose id it gets here."""
        with self._backend.lock:
            existing(self._state.hosts, agent.host)
            return self._kept(replace(agent, id=self._backend.new_id()), "add")

    def edit(self, agent: FenceAgent) -> FenceAgent:
        """Put this in the place of the agent with the same id."""
        with self._backend.lock:
            existing(self._state.fence_agents, agent.id)
            return self._kept(agent, "edit")

    def remove(self, agent_id: str) -> None:
        with self._backend.lock:
            existing(self._state.fence_agents, agent_id)
            self._state.drop(self._state.fence_agents, agent_id)

    def _kept(self, agent: FenceAgent, action: str) -> FenceAgent:
        if agent.type not in TYPES:
            raise host_refusals.fence_agent_not_supported(action)
        port = str(agent.options.get(_PORT, "1") if agent.port is None else agent.port)
        if not (port.isdecimal() and 0 < int(port) < 65536):
            raise host_refusals.fence_agent_port()
        self._state.put(self._state.fence_agents, agent)
        return agent
