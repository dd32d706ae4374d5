"""One form of any kind over the variables of a model for CP-SAT, asked for under a literal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.planning.encode.cp import At, loads
from ovirt_placement.planning.encode.cp_of_all import restrict
from ovirt_placement.rules.forms import Allowed, AtMost, Form, OfAll


def ask(
    cp: cp_model.CpModel, form: Form, at: At, domains: Mapping[str, Sequence[str]], literal: cp_model.IntVar
) -> None:
    """Where the literal is true, these VMs satisfy the form; each may be on the hosts of its domain."""
    if isinstance(form, Allowed):
        for vm, hosts in domains.items():
            for host in hosts:
                if not form.right(host):
                    cp.add_implication(literal, at[vm, host].negated())
    elif isinstance(form, AtMost):
        for load in loads(cp, form, at, domains, ()).values():
            cp.add(sum(load) <= form.most).only_enforce_if(literal)
    elif isinstance(form, OfAll):
        restrict(cp, form, at, domains, (), 1 - literal)
    else:
        _same(cp, at, domains, literal)


def _same(
    cp: cp_model.CpModel, at: At, domains: Mapping[str, Sequence[str]], literal: cp_model.IntVar
) -> None:
    for host in dict.fromkeys(host for hosts in domains.values() for host in hosts):
        here = [at[vm, host] for vm in domains if (vm, host) in at]
        for one in here:
            same = here[0] if len(here) == len(domains) else 0
            cp.add(one == same).only_enforce_if(literal)
