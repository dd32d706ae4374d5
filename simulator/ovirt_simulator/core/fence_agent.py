"""What the engine would fence a host with; nothing here does."""

from __future__ import annotations

from .entities import Record

#: The types that an engine of compatibility 4.2 and later supports.
_LISTED = """
amt_ws apc apc_snmp bladecenter cisco_ucs drac5 drac7 eps hpblade ilo ilo2 ilo3 ilo4 ilo_ssh ipmilan
redfish rsa rsb wti
"""
TYPES = frozenset(_LISTED.split())


class FenceAgent(Record, frozen=True):
    """A fence agent of a host, without the password, which nobody learns."""

    id: str
    #: The id of the host.
    host: str
    address: str
    type: str
    user: str
    #: In which the agents of a host are tried.
    order: int
    port: int | None = None
    encrypt_options: bool = False
    options: dict[str, str] = {}
