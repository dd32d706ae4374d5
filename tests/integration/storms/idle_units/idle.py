"""Units with the names of ours that decide nothing: what they cost, any external scheduler costs."""

from __future__ import annotations


class AffinityFilter:
    def do_filter(self, hosts, vm, args):
        """Accept all hosts"""
        return hosts


class HostAffinityFilter(AffinityFilter):
    pass


class SoftAffinityWeight:
    def do_score(self, hosts, vm, args):
        """Find all hosts equally good"""
        return [(host, 0) for host in hosts]


class HostAffinityWeight(SoftAffinityWeight):
    pass


class HaReservationWeight(SoftAffinityWeight):
    pass


class HaReservationBalance:
    def do_balance(self, hosts, args):
        """Move nothing"""
        return "", []
