"""What `ovirt-placement doctor` finds: something that is not right, and what to do about it."""

from __future__ import annotations

import msgspec

from ovirt_placement.model.names import Named


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is not right, in plain words."""

    #: Which thing it is, for programs.
    kind: str
    what: str
    #: What would repair it.
    remedy: str
    #: The cluster that it concerns.
    cluster: Named | None = None
    #: Whether a rule means nothing for it: such a finding can be reported to the engine as an event.
    rule: bool = False
