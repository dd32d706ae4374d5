"""Users and groups: taken from a directory, which has whomever one asks for, and removed.

Source: the engine's AddUserCommand, AddGroupCommand, RemoveUserCommand and RemoveGroupCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import ownership
from .access import Principal
from .backend import Backend
from .entities import ADMIN, Caller
from .event_codes import EventCode
from .rejections import existing


class DirectoryCommands:
    """Commands on users and groups; `remove` raises `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, name: str, directory: str, *, is_group: bool, caller: Caller = ADMIN) -> Principal:
        """Take a user or group from its directory; who is there already stays. No event reports a group."""
        with self._backend.lock:
            added = Principal(id="", name=name, directory=directory, is_group=is_group)
            known = self._state.principals.values()
            there = next((one for one in known if replace(one, id="") == added), None)
            if there is None:
                there = replace(added, id=self._backend.new_id())
                self._state.put(self._state.principals, there)
            if not is_group:
                self._backend.audit_log.log(EventCode.USER_ADD, caller, words={"name": name})
            return there

    def remove(self, principal_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a user or group with its permissions and tags."""
        with self._backend.lock:
            gone = existing(self._state.principals, principal_id)
            for permission in tuple(self._state.permissions.values()):
                if permission.holder == principal_id:
                    self._state.drop(self._state.permissions, permission.id)
                    if permission.vm is not None:
                        ownership.settle(self._state, self._state.vms[permission.vm])
            if principal_id in self._state.holders_tags:
                self._state.drop(self._state.holders_tags, principal_id)
            self._state.drop(self._state.principals, principal_id)
            code = EventCode.USER_REMOVE_AD_GROUP if gone.is_group else EventCode.USER_REMOVE_ADUSER
            self._backend.audit_log.log(code, caller, words={"name": gone.name})
