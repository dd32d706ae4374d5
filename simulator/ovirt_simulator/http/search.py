"""The part of the engine's search language that placement asks: `name=db* and tag=db or host=h1 page 2`.

As in the engine, brackets mean nothing, `and` binds closer than `or`, a word that is no field is text to be
found in any name, and a search that cannot be parsed finds nothing, with status 200. Fields of the engine
that are not here are refused with 501, and so are joins and dates.

Source: the engine's SyntaxChecker and its ConditionFieldAutoCompleters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import fault, not_simulated

Record = TypeVar("Record")
#: The texts that a field of a record has.
Read = Callable[[Call, Any], Iterable[str]]


class _Condition(NamedTuple):
    """One comparison; None as the field of free text."""

    field: str | None
    value: str
    negated: bool

    @property
    def pattern(self) -> re.Pattern[str]:
        """What a value with `*` in it means; case does not count."""
        return _pattern(self.value)


class _Search(NamedTuple):
    #: Alternatives, each of conditions that must all be met.
    any_of: Sequence[Sequence[_Condition]]
    page: int


class _Unparsed(Exception):
    """What the engine cannot parse: it finds nothing."""


_TOKEN = re.compile(r"""\s*(?:"(?P<quoted>[^"]*)"|(?P<sign>!=|<>|>=|<=|[=<>~])|(?P<word>[^\s=<>!~"]+))""")
_SIGNS = {"=": False, "!=": True, "<>": True}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VM_STATUSES = _words(
    "down up poweringup paused migratingfrom migratingto unknown notresponding waitforlaunch "
    "rebootinprogress savingstate restoringstate suspended imageillegal imagelocked poweringdown "
    "migrating"
)
_HOST_STATUSES = _words(
    "unassigned down maintenance up nonresponsive error installing installfailed reboot "
    "preparingformaintenance nonoperational pendingapproval initializing connecting"
)
#: Fields of VMs and hosts that the engine knows besides.
_ELSEWHERE = _words(
    "cpu_usage mem_usage network_usage memory os pool template type uptime vcpus quota comment ip "
    "fqdn storage datacenter cpus cores version ksm_enabled run_on_host current_cd "
    "has_illegal_images loggeduser guest_name active_vms load mem_committed swap hw_id architecture "
    "spm_id creationdate time event"
)


def _host(call: Call, vm: Any) -> list[str]:
    host = vm.host and call.state.hosts.get(vm.host)
    return [host.name] if host else []


def _cluster(call: Call, record: Any) -> list[str]:
    cluster = call.state.clusters.get(record.cluster)
    return [cluster.name] if cluster else []


def _reference(kind: str) -> Read:
    return lambda _, event: filter(None, [(one := getattr(event, kind)) and one.name])


def _attribute(name: str) -> Read:
    return lambda _, record: [] if (value := getattr(record, name)) is None else [str(value)]


def _status(_: Call, record: Any) -> list[str]:
    return [record.status.replace("_", ""), getattr(record, "engine_status", record.status)]


#: By what is searched, the fields of a record.
_FIELDS: dict[str, dict[str, Read]] = {
    "vms": {
        "id": _attribute("id"),
        "name": _attribute("name"),
        "description": _attribute("description"),
        "tag": lambda _, vm: vm.tags,
        "status": _status,
        "host": _host,
        "cluster": _cluster,
    },
    "hosts": {
        "id": _attribute("id"),
        "name": _attribute("name"),
        "tag": lambda _, host: host.tags,
        "status": _status,
        "cluster": _cluster,
        "vm": lambda call, host: [vm.name for vm in tuple(call.state.vms.values()) if vm.host == host.id],
    },
    "clusters": {"id": _attribute("id"), "name": _attribute("name")},
    "data centers": {"id": _attribute("id"), "name": _attribute("name")},
    "networks": {"id": _attribute("id"), "name": _attribute("name")},
    "users": {"name": _attribute("name"), "usrname": _attribute("user_name")},
    "jobs": {"correlation_id": _attribute("correlation_id"), "status": _attribute("status")},
    "events": {
        "correlation_id": _attribute("correlation_id"),
        "type": _attribute("code"),
        "severity": _attribute("severity"),
        "origin": _attribute("origin"),
        "time": lambda _, event: [event.time.isoformat()],
        "_event_vm_id": lambda _, event: filter(None, [event.vm and event.vm.id]),
        "vm": _reference("vm"),
        "host": _reference("host"),
        "cluster": _reference("cluster"),
    },
}
_WORDS = {("vms", "status"): _VM_STATUSES, ("hosts", "status"): _HOST_STATUSES}
#: What free text is looked for in.
_TEXTS = ("name", "description")


def searched(call: Call, kind: str, records: Iterable[Record]) -> list[Record]:
    """Give the records that the request asks for, in its order; all when another call follows the list.

    Without `page`, `max` is what the list is cut to elsewhere. Raises `Refusal`.
    """
    text = "" if call.followed else call.parameter("search") or ""
    found = list(records)
    if not text.strip():
        return found
    limit = call.number("max")
    if limit is not None and limit < 0:
        raise fault(500, f"Illegal max count value for query : {limit}")
    try:
        search = _parse(text, kind)
    except _Unparsed:
        return []
    if (ids := _wanted_ids(search)) is not None:
        found = [record for record in found if record.id.casefold() in ids]  # type: ignore[attr-defined]
    found = [record for record in found if _is_found(call, kind, record, search)]
    if search.page == 0:
        raise fault(500, "ERROR: OFFSET must not be negative")
    size = len(found) if limit is None else limit
    return found[(search.page - 1) * size : search.page * size]


def _wanted_ids(search: _Search) -> set[str] | None:
    """The ids that alone can be found, where each alternative names one: of 10,000 VMs few are looked at."""
    named = [
        {one.value.casefold() for one in every if one.field == "id" and not (one.negated or "*" in one.value)}
        for every in search.any_of
    ]
    return set().union(*named) if named and all(named) else None


def _is_found(call: Call, kind: str, record: Any, search: _Search) -> bool:
    if not search.any_of:
        return True
    return any(all(_meets(call, kind, record, one) for one in every) for every in search.any_of)


def _meets(call: Call, kind: str, record: Any, condition: _Condition) -> bool:
    fields = _FIELDS[kind]
    names = [condition.field] if condition.field else [name for name in _TEXTS if name in fields]
    texts = (text for name in names for text in fields[name](call, record))
    return any(condition.pattern.fullmatch(text) for text in texts) is not condition.negated


def _parse(text: str, kind: str) -> _Search:
    tokens = _tokens(text)
    page = 1
    if len(tokens) >= 2 and tokens[-2].lower() == "page":
        if not tokens[-1].isdecimal():
            raise _Unparsed
        page, tokens = int(tokens[-1]), tokens[:-2]
    if "sortby" in (token.lower() for token in tokens):
        raise not_simulated("searches with sortby")
    return _Search(_alternatives(tokens, kind), page)


def _tokens(text: str) -> list[str]:
    """Give words, signs, and what stands in quotes with them around it."""
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _Unparsed
        found.append(match[0].strip())
        at = match.end()
    return found


def _alternatives(tokens: list[str], kind: str) -> list[list[_Condition]]:
    found: list[list[_Condition]] = [[]]
    rest = [token for token in tokens if token.strip("()")]
    while rest:
        condition, rest = _condition(rest, kind)
        found[-1].append(condition)
        if not rest:
            return found
        joint, rest = rest[0].lower(), rest[1:]
        if joint not in ("and", "or") or not rest:
            raise _Unparsed
        if joint == "or":
            found.append([])
    return [] if found == [[]] else found


def _condition(tokens: list[str], kind: str) -> tuple[_Condition, list[str]]:
    name = tokens[0].strip("()").lower()
    is_compared = len(tokens) > 1 and _is_sign(tokens[1])
    if _is_sign(tokens[0]):
        raise _Unparsed
    if not is_compared:
        return _Condition(None, f"*{_value(tokens[0])}*", negated=False), tokens[1:]
    field = _field(name, kind)
    if tokens[1] not in _SIGNS or len(tokens) < 3 or _is_sign(tokens[2]):
        if field is not None and tokens[1] in _SIGNS.keys() | {"~"}:
            raise _Unparsed
        raise not_simulated(f"searches with {tokens[1]}")
    value = _value(tokens[2])
    if field is None:  # text that holds all of it
        return _Condition(None, f"*{name}{tokens[1]}{value}*", negated=False), tokens[3:]
    words = _WORDS.get((kind, field))
    if words is not None and "*" not in value and value.lower().replace("_", "") not in words:
        raise _Unparsed
    condition = _Condition(field, value.replace("_", "") if words else value, _SIGNS[tokens[1]])
    return condition, tokens[3:]


def _field(name: str, kind: str) -> str | None:
    """Give the field of this name, `cluster` or `cluster.name`; None for what the engine knows of none."""
    plain = name.removesuffix(".name")
    if plain in _FIELDS[kind]:
        return plain
    if name in _ELSEWHERE or "." in name:
        raise not_simulated(f"searches by {name}")
    return None


def _is_sign(token: str) -> bool:
    return bool(re.fullmatch("!=|<>|>=|<=|[=<>~]", token))


def _value(token: str) -> str:
    if token.startswith('"'):
        return token[1:-1]
    value = token.strip("()")
    if "'" in value or not value:
        raise _Unparsed
    return value


@lru_cache(maxsize=256)
def _pattern(value: str) -> re.Pattern[str]:
    """Give what a value with `*` in it means; case does not count."""
    return re.compile(".*".join(map(re.escape, value.split("*"))), re.IGNORECASE | re.DOTALL)
