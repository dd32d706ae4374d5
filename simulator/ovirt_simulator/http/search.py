"""The part of the engine's search language that placement asks: `name=db* and tag=db or host=h1 page 2`.

As in the engine, brackets mean nothing, `and` binds closer than `or`, a word that is no field is text to be
found in any name, and a search that cannot be parsed finds nothing, with status 200. Fields of the engine
that are not here are refused with 501, and so are joins, dates and orders.

Source: the engine's SyntaxChecker and its ConditionFieldAutoCompleters.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from ovirt_placement.model.infrastructure import HOST_STATUSES, VM_STATUSES
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import fault, not_simulated

Record = TypeVar("Record")


class _Condition(NamedTuple):
    """One comparison; None as the field of free text."""

    field: str | None
    value: str
    negated: bool


#: Alternatives, each of conditions that must all be met.
_Alternatives = Sequence[Sequence[_Condition]]


class _Unparsed(Exception):
    """What the engine cannot parse: it finds nothing."""


_WORD = r'[^\s=<>!~"()]+'
#: One condition, with the brackets around it; without a field it is free text.
_CONDITION = re.compile(rf'[\s()]*(?:({_WORD})[\s()]*(!=|<>|>=|<=|[=<>~])[\s()]*)?("[^"]*"|{_WORD})[\s()]*')
_JOINT = re.compile(r"(and|or)(?![^\s()])", re.IGNORECASE)
_PAGE = re.compile(r"(?:^|\s)page\s+(\S+)\s*$", re.IGNORECASE)
_SIGNS = {"=": False, "!=": True, "<>": True}


#: By what is searched, the fields of a record.
_FIELDS = {
    "vms": "id name description tag status host cluster",
    "hosts": "id name tag status cluster vm",
    "clusters": "id name",
    "jobs": "correlation_id status",
    "events": "correlation_id severity origin type _event_vm_id vm host cluster",
}
#: Attributes of records that have another name than the field.
_ATTRIBUTES = {"tag": "tags", "type": "code"}
#: Fields of VMs and hosts that the engine knows besides.
_ELSEWHERE = (
    "cpu_usage mem_usage network_usage memory os pool template type uptime vcpus quota comment ip fqdn"
    " storage datacenter cpus cores version ksm_enabled run_on_host current_cd has_illegal_images loggeduser"
    " guest_name active_vms load mem_committed swap hw_id architecture spm_id creationdate time event"
)
_STATUSES = {
    "vms": {status.replace("_", "") for status in VM_STATUSES} | {"migratingfrom", "migratingto"},
    "hosts": {status.replace("_", "") for status in HOST_STATUSES},
}


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
        any_of, page = _parse(text, kind)
    except _Unparsed:
        return []
    if (ids := _wanted_ids(any_of)) is not None:
        found = [record for record in found if record.id.casefold() in ids]  # type: ignore[attr-defined]
    if any_of:
        found = [
            record
            for record in found
            if any(all(_meets(call, kind, record, one) for one in every) for every in any_of)
        ]
    size = len(found) if limit is None else limit
    return found[(page - 1) * size : page * size]


def _wanted_ids(any_of: _Alternatives) -> set[str] | None:
    """The ids that alone can be found, where each alternative names one: of 10,000 VMs few are looked at."""
    named = [
        {one.value.casefold() for one in every if one.field == "id" and not (one.negated or "*" in one.value)}
        for every in any_of
    ]
    return set().union(*named) if named and all(named) else None


def _meets(call: Call, kind: str, record: Any, condition: _Condition) -> bool:
    fields = [condition.field] if condition.field else ["name", "description"]
    known = (field for field in fields if field in _FIELDS[kind].split())
    texts = (text for field in known for text in _texts(call, kind, record, field) if text)
    return any(_pattern(condition.value).fullmatch(text) for text in texts) is not condition.negated


def _texts(call: Call, kind: str, record: Any, field: str) -> Iterable[str | None]:
    """The texts that a field of a record has: of what refers to another record, the name of that."""
    if field == "_event_vm_id":
        return [record.vm and record.vm.id]
    if (kind, field) == ("hosts", "vm"):
        return [vm.name for vm in tuple(call.state.vms.values()) if vm.host == record.id]
    value = getattr(record, _ATTRIBUTES.get(field, field))
    if field == "status":
        return [value.replace("_", ""), getattr(record, "engine_status", value)]
    if field in ("vm", "host", "cluster"):
        found = getattr(call.state, f"{field}s").get(value) if isinstance(value, str) else value
        return [found and found.name]
    return value if isinstance(value, tuple) else [None if value is None else str(value)]


def _parse(text: str, kind: str) -> tuple[_Alternatives, int]:
    if re.search(r"\bsortby\b", text, re.IGNORECASE):
        raise not_simulated("searches with sortby")
    page = 1
    if paged := _PAGE.search(text):
        if not paged[1].isdecimal():
            raise _Unparsed
        page, text = int(paged[1]), text[: paged.start()]
    if not text.strip("() \t\n"):
        return [], page
    found: list[list[_Condition]] = [[]]
    at = 0
    while condition := _CONDITION.match(text, at):
        found[-1].append(_condition(kind, *condition.groups()))
        at = condition.end()
        if at == len(text):
            return found, page
        joint = _JOINT.match(text, at)
        if joint is None:
            break
        at = joint.end()
        found += [[]] if joint[1].lower() == "or" else []
    raise _Unparsed


def _condition(kind: str, name: str | None, sign: str, value: str) -> _Condition:
    if not value.startswith('"') and "'" in value:
        raise _Unparsed
    value = value.strip('"')
    if name is None:
        return _Condition(None, f"*{value}*", negated=False)
    field = _field(name.lower(), kind)
    if sign not in _SIGNS:
        if field is not None and sign == "~":
            raise _Unparsed
        raise not_simulated(f"searches with {sign}")
    if field is None:  # text that holds all of it
        return _Condition(None, f"*{name.lower()}{sign}{value}*", negated=False)
    if field == "status" and kind in _STATUSES:
        value = value.replace("_", "")
        if "*" not in value and value.lower() not in _STATUSES[kind]:
            raise _Unparsed
    return _Condition(field, value, _SIGNS[sign])


def _field(name: str, kind: str) -> str | None:
    """Give the field of this name, `cluster` or `cluster.name`; None for what the engine knows of none."""
    plain = name.removesuffix(".name")
    if plain in _FIELDS[kind].split():
        return plain
    if name in _ELSEWHERE.split() or "." in name:
        raise not_simulated(f"searches by {name}")
    return None


@lru_cache(maxsize=256)
def _pattern(value: str) -> re.Pattern[str]:
    """Give what a value with `*` in it means; case does not count."""
    return re.compile(".*".join(map(re.escape, value.split("*"))), re.IGNORECASE | re.DOTALL)
