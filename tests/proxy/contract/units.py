"""The units that these tests call: some answer well, some badly, some not at all; and their configuration."""

from ..running import units

HOSTS = ["h1", "h2", "h3", "h4"]
VM = "11111111-2222-3333-4444-555555555555"

_DESCRIBED = '''
class Unwelcome(Exception):
    refuses = True

class KeepOdd:
    """A class's own text is not its description."""
    properties_validation = "odd_limit=[0-9]*;odd_mode=a|b"
    def do_filter(self, hosts, vm, args):
        """Behält ungerade Hosts — 保持"""
        return [host for host in reversed(hosts) if host[-1] in "13"] * 2 + ["stranger"]

class Parametrized:
    properties_validation = "grenze=[0-9]*;\u0433\u0440=[0-9]*"
    def do_filter(self, hosts, vm, args):
        """keeps all"""
        return hosts

'''

#: Writes past all checks, into its worker's connection to the proxy.
_BY_FORCE = """
import contextlib, os, stat, struct
body = b'["vm-1", ["h1"]]'
for number in range(3, 30):
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            os.write(number, struct.pack(">III", 0, 1, len(body)) + b"1" + body)
return ("", [])
"""

_RAISING = "raise ValueError('a & b <c>')"

_FILTERS = units(
    KeepFirst="print('thinking aloud')\nreturn {hosts[0]}",
    KeepNone="return []",
    SilentFilter="pass",
    RaisingFilter=_RAISING,
    Strict=_RAISING,
    Refusing="raise Unwelcome(args.get('because', 'nobody may run it'))",
    Empty="return hosts if args == {'limit': '', 'other': '5'} else []",
    Echo="return hosts if (vm, args) == ('vm', {'key': 'wert ä'}) else []",
)
_WEIGHTS = units(
    "score",
    SilentWeight="pass",
    RaisingWeight=_RAISING,
    RefusingWeight="raise Unwelcome('nobody may run it')",
    Weigh="return [('h2', 7.6), ('h1', 2**40), ('stranger', 9), ('h4', -3)]",
    WeighSome="return [('h2', 3), ('h1', 1)]",
    WeighBadly="""
    given = {"nan": float("nan"), "text": "5", "none": None, "bool": True}
    return [("h1", given[args["how"]])]
    """,
)
_BALANCES = units(
    "balance",
    SilentBalance="pass",
    RaisingBalance=_RAISING,
    Move=f"'''moves'''\nreturn ('{VM}', ['stranger', 'h3', 'h1'])",
    MoveNowhere=f"return ('{VM}', ['stranger'])",
    MoveAbroad=f"return ('{VM}', ['stranger'])",
    MoveOddly="return ('vm-1', hosts)",
    MoveByForce=_BY_FORCE,
)
PLUGINS = _DESCRIBED + _FILTERS + _WEIGHTS + _BALANCES

CONFIG = """
[calls]
deadline_seconds = 5
[units.Strict]
on_failure = "reject"
[units.Absent]
on_failure = "reject"
"""
