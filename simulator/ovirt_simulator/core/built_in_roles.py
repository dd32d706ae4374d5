"""Two of the engine's predefined roles: those that make somebody the user of a VM.

Source: the engine's packaging/dbscripts/data/00500_insert_roles.sql.
"""

from __future__ import annotations

from .entities import Role

USER_ROLE = Role(id="00000000-0000-0000-0001-000000000001", name="UserRole")
USER_VM_MANAGER = Role(id="def00006-0000-0000-0000-def000000006", name="UserVmManager")

ROLES = {role.id: role for role in (USER_ROLE, USER_VM_MANAGER)}
