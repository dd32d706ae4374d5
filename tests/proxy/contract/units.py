"""The units that these tests call: some answer well, some badly, some not at all; and their configuration."""

HOSTS = ["h1", "h2", "h3", "h4"]

PLUGINS = '''
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

class KeepFirst:
    def do_filter(self, hosts, vm, args):
        print("thinking aloud")
        return {hosts[0]}

class KeepNone:
    def do_filter(self, hosts, vm, args):
        return []

class Silent:
    def do_filter(self, hosts, vm, args):
        pass
    def do_score(self, hosts, vm, args):
        pass
    def do_balance(self, hosts, args):
        pass

class Raising:
    def do_filter(self, hosts, vm, args):
        raise ValueError("a & b <c>")
    def do_score(self, hosts, vm, args):
        raise ValueError("no")
    def do_balance(self, hosts, args):
        raise ValueError("no")

class Strict(Raising):
    pass

class Unwelcome(Exception):
    refuses = True

class Refusing:
    def do_filter(self, hosts, vm, args):
        raise Unwelcome(args.get("because", "nobody may run it"))
    def do_score(self, hosts, vm, args):
        raise Unwelcome("nobody may run it")

class Weigh:
    def do_score(self, hosts, vm, args):
        return [("h2", 7.6), ("h1", 2**40), ("stranger", 9), ("h4", -3)]

class WeighSome:
    def do_score(self, hosts, vm, args):
        return [("h2", 3), ("h1", 1)]

class WeighBadly:
    def do_score(self, hosts, vm, args):
        return [("h1", {"nan": float("nan"), "text": "5", "none": None, "bool": True}[args["how"]])]

class Move:
    def do_balance(self, hosts, args):
        """moves"""
        return ("11111111-2222-3333-4444-555555555555", ["stranger", "h3", "h1"])

class MoveNowhere:
    def do_balance(self, hosts, args):
        return ("11111111-2222-3333-4444-555555555555", ["stranger"])

class MoveAbroad(MoveNowhere):
    pass

class MoveOddly:
    def do_balance(self, hosts, args):
        return ("vm-1", hosts)

class MoveByForce:
    """Writes past all checks, into its worker's connection to the proxy."""
    def do_balance(self, hosts, args):
        import os, socket, stat, struct
        body = b'["vm-1", ["h1"]]'
        for number in range(3, 30):
            try:
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    os.write(number, struct.pack(">III", 0, 1, len(body)) + b"1" + body)
            except OSError:
                pass
        return ("", [])

class Empty:
    def do_filter(self, hosts, vm, args):
        return hosts if args == {"limit": "", "other": "5"} else []

class Echo:
    def do_filter(self, hosts, vm, args):
        return hosts if (vm, args) == ("vm", {"key": "wert ä"}) else []
'''

CONFIG = """
[calls]
deadline_seconds = 5
[units.Strict]
on_failure = "reject"
[units.Absent]
on_failure = "reject"
"""
