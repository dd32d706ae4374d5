"""The reader of XML-RPC calls: each input gives a call or a fault."""

from __future__ import annotations

import random
import xmlrpc.client
from typing import Any

import pytest

from ovirt_scheduler_proxy import xmlrpc as own
from ovirt_scheduler_proxy.scheduler import read_question
from ovirt_scheduler_proxy.xmlrpc import Fault, MethodCall, read_call

from . import damaged

_MOST_ELEMENTS = 5000

_METHODS = ("runFilters", "runCostFunctions", "runLoadBalancing", "discover", "noSuchMethod", "")

_TEXTS = ("", " ", "h1", "Keep", "é保\U0001f600", "a\nb", "&<>]]>", "x" * 300, "0" * 32)

_TOKENS = (
    *(b"<value>", b"</value>", b"<array><data>", b"</data></array>", b"<struct>", b"</struct>", b"<member>"),
    *(b"<name>", b"<int>", b"<i4>", b"<string>", b"</param>", b"<param>", b"<ex:nil/>", b"<nil/>"),
    *(b"<ex:i8>1</ex:i8>", b"<double>1e999</double>", b"<boolean>2</boolean>", b"<base64>=</base64>"),
    *(b"<dateTime.iso8601>x</dateTime.iso8601>", b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"&x;", b"&lt;", b"&#0;"),
    *(b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<?pi?>", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"encoding='utf-16'", b"encoding='utf-7'", b"encoding='x'", b"9" * 20, b"-", b"\xed\xa0\x80"),
)


def attempt(chance: random.Random) -> None:
    body = damaged(_call(chance), _TOKENS, chance)
    call = _read(body)
    if call is None:
        return
    try:
        read_question(call.method, call.parameters)
    except Fault as fault:
        _check(fault)


def _check(fault: Fault) -> None:
    """It is short, and a client can read it."""
    assert len(fault.sentence) < 400, fault.sentence
    with pytest.raises(xmlrpc.client.Fault):
        xmlrpc.client.loads(own.fault(fault.code, fault.sentence))


def _read(body: bytes) -> MethodCall | None:
    try:
        return read_call(body, _MOST_ELEMENTS)
    except Fault as fault:
        _check(fault)
        return None


def _call(chance: random.Random) -> bytes:
    """A call, most often one that the engine might make."""
    method = chance.choice(_METHODS)
    parameters: tuple[Any, ...]
    if chance.random() < 0.7:
        hosts = [f"{chance.getrandbits(32):08x}" for _ in range(chance.randint(0, 12))]
        units = [chance.choice(_TEXTS) for _ in range(chance.randint(0, 3))]
        asked = [[unit, chance.randint(-9, 9)] for unit in units] if method == "runCostFunctions" else units
        parameters = (asked, hosts, "vm", {chance.choice(_TEXTS): chance.choice((*_TEXTS, None))})
    else:
        parameters = tuple(_value(chance, 0) for _ in range(chance.randint(0, 5)))
    body = xmlrpc.client.dumps(parameters, method, allow_none=True)
    if chance.random() < 0.5:
        body = body.replace("\n", "")
    return body.encode()


def _value(chance: random.Random, depth: int) -> Any:
    plain = (None, True, -1, 2**31 - 1, 0.5, float("nan"), b"\0", *_TEXTS)
    what = chance.randrange(4) if depth < 5 else 0
    if what == 2:
        return [_value(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    if what == 3:
        return {text: _value(chance, depth + 1) for text in chance.choices(_TEXTS, k=2)}
    return chance.choice(plain)
