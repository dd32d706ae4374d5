"""What `ovirt-placement doctor` finds: something that is not right, and what to do about it."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is not right, in plain words."""

    what: str
    #: What would mend it.
    remedy: str
    #: The id of the cluster that it concerns.
    cluster: str | None = None
    #: Whether a rule means nothing for it: such a finding can be told to the engine as an event.
    rule: bool = False
