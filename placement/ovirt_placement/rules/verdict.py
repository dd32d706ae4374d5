"""What a rule is asked and what it answers: verdicts on hosts, with their reasons as data."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Struct(msgspec.Struct, frozen=True, omit_defaults=True):
    """An immutable record that can be written as JSON."""


class Kind(StrEnum):
    """What a reason says, and in which fields it says it.

    The first ones are vetoes: the host is out. The others are notes, which stand beside a verdict or
    a weight and change nothing.
    """

    #: `group` keeps the VMs with `vm`, which runs (or will run) on `host`.
    POSITIVE_PEER_ELSEWHERE = "positive_peer_elsewhere"
    #: `group` keeps the VMs away from `vm`, which runs (or will run) on `host`, the host asked about.
    NEGATIVE_PEER_HERE = "negative_peer_here"
    #: `group` keeps `vm` away from another VM of the same request: no one host can take both.
    REQUEST_MUST_PART = "request_must_part"
    #: `group` lets `vm` run only on hosts that it lists, and this is none of them.
    HOST_NOT_LISTED = "host_not_listed"
    #: `group` keeps `vm` off this host.
    HOST_FORBIDDEN = "host_forbidden"
    #: Of the memory of `host`, only `number` MiB are not handed out to VMs: less than is needed.
    MEMORY_HANDED_OUT = "memory_handed_out"
    #: Of the memory of `host`, only `number` MiB are physically free.
    MEMORY_IN_USE = "memory_in_use"
    #: The VM's placement keys give `host` the score `number`, which is not acceptable.
    KEYS_REFUSE = "keys_refuse"
    #: The host is not up, or not known.
    HOST_NOT_UP = "host_not_up"
    #: `vm` cannot be migrated and is pinned to other hosts.
    PINNED_ELSEWHERE = "pinned_elsewhere"

    #: `group` is satisfied here: `vm` runs (or will run) on this host.
    POSITIVE_PEER_HERE = "positive_peer_here"
    #: `group` stays broken even so: its `vm` runs (or will run) on another host, `host`.
    POSITIVE_PEERS_SPLIT = "positive_peers_split"
    #: Where `vm` of `group` is migrating to is not known; only `host`, its source, is counted.
    MIGRATION_TARGET_UNKNOWN = "migration_target_unknown"
    #: `group` restricts `vm` to hosts but lists none: it is treated as not configured.
    GROUP_WITHOUT_HOSTS = "group_without_hosts"
    #: The soft rule of `group` means nothing for `vm`: the cluster's policy does not enable `unit`.
    UNIT_MISSING = "unit_missing"
    #: Soft or hard, `group` of priority `number` would be broken on this host; a negative one by `vm`.
    GROUP_BROKEN_HERE = "group_broken_here"
    #: `number` positive peers run (or will run) on this host.
    POSITIVE_PEERS_HERE = "positive_peers_here"
    #: `number` of them cannot be moved.
    FIXED_PEERS_HERE = "fixed_peers_here"
    #: `number` highly available VMs run (or will run) on this host.
    HA_VMS_HERE = "ha_vms_here"
    #: The host is a dedicated failover host: no weight prefers it.
    FAILOVER_HOST = "failover_host"
    #: `host` is found in round `number` of the operator's placement keys; the first is best.
    KEYS_ROUND = "keys_round"
    #: The customer's placement keys give `host` the score `number`, which counts within a round.
    KEYS_CUSTOMER_SCORE = "keys_customer_score"

    @property
    def veto(self) -> bool:
        return self in _VETOES


_VETOES = frozenset(
    {
        Kind.POSITIVE_PEER_ELSEWHERE,
        Kind.NEGATIVE_PEER_HERE,
        Kind.REQUEST_MUST_PART,
        Kind.HOST_NOT_LISTED,
        Kind.HOST_FORBIDDEN,
        Kind.MEMORY_HANDED_OUT,
        Kind.MEMORY_IN_USE,
        Kind.KEYS_REFUSE,
        Kind.HOST_NOT_UP,
        Kind.PINNED_ELSEWHERE,
    }
)


class Reason(Struct, frozen=True):
    """One thing that speaks about a host; `Kind` says which fields count and what they mean.

    `group` is the id of an affinity group, or of a legacy label that acts as one. Sentences with
    names are made by `ovirt_placement.answers.sentences`.
    """

    kind: Kind
    group: str | None = None
    vm: str | None = None
    host: str | None = None
    number: float | None = None
    unit: str | None = None


class Request(Struct, frozen=True):
    """Which VMs look for one common host, and among which hosts."""

    vms: tuple[str, ...]
    candidate_hosts: tuple[str, ...]
    ignore_hard_vm_affinity: bool = False


class Verdict(Struct, frozen=True):
    """Whether a rule admits a host, and why; an accepted host carries notes only."""

    host: str
    accepted: bool
    reasons: tuple[Reason, ...] = ()

    @classmethod
    def of(cls, host: str, reasons: tuple[Reason, ...]) -> Verdict:
        """Accept the host unless one of the reasons is a veto."""
        return cls(host, not any(reason.kind.veto for reason in reasons), reasons)


class Weight(Struct, frozen=True):
    """A rule's preference for a host among those asked about, and why.

    Rank 0 is best; hosts with the same rank are tied, and no rank between 0 and the worst is missing.
    """

    host: str
    rank: int
    reasons: tuple[Reason, ...] = ()
