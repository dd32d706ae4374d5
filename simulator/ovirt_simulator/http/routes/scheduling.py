"""Scheduling policies, their units, and affinity labels."""

from __future__ import annotations

from ovirt_simulator.http.resources import affinity_labels, policies
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/affinitylabels": ("affinity_labels", affinity_labels.list_labels),
        "/affinitylabels/<label_id>/vms": ("vms", affinity_labels.list_vms),
        "/affinitylabels/<label_id>/hosts": ("hosts", affinity_labels.list_hosts),
        "/schedulingpolicies": ("scheduling_policies", policies.list_policies),
        "/schedulingpolicies/<policy_id>/filters": ("filters", policies.list_filters),
        "/schedulingpolicies/<policy_id>/weights": ("weights", policies.list_weights),
        "/schedulingpolicies/<policy_id>/balances": ("balances", policies.list_balances),
        "/schedulingpolicyunits": ("scheduling_policy_units", policies.list_units),
    },
    reads={
        "/affinitylabels/<label_id>": affinity_labels.get_label,
        "/affinitylabels/<label_id>/vms/<vm_id>": affinity_labels.get_vm,
        "/affinitylabels/<label_id>/hosts/<host_id>": affinity_labels.get_host,
        "/schedulingpolicies/<policy_id>": policies.get_policy,
        "/schedulingpolicies/<policy_id>/filters/<unit_id>": policies.get_filter,
        "/schedulingpolicies/<policy_id>/weights/<unit_id>": policies.get_weight,
        "/schedulingpolicies/<policy_id>/balances/<unit_id>": policies.get_balance,
        "/schedulingpolicyunits/<unit_id>": policies.get_unit,
    },
    posts={
        "/affinitylabels": affinity_labels.post_label,
        "/affinitylabels/<label_id>/vms": affinity_labels.post_vm,
        "/affinitylabels/<label_id>/hosts": affinity_labels.post_host,
        "/schedulingpolicies": policies.post_policy,
        "/schedulingpolicies/<policy_id>/filters": policies.post_filter,
        "/schedulingpolicies/<policy_id>/weights": policies.post_weight,
        "/schedulingpolicies/<policy_id>/balances": policies.post_balance,
    },
    puts={
        "/affinitylabels/<label_id>": affinity_labels.put_label,
        "/schedulingpolicies/<policy_id>": policies.put_policy,
    },
    deletes={
        "/affinitylabels/<label_id>": affinity_labels.delete_label,
        "/affinitylabels/<label_id>/vms/<vm_id>": affinity_labels.delete_vm,
        "/affinitylabels/<label_id>/hosts/<host_id>": affinity_labels.delete_host,
        "/schedulingpolicies/<policy_id>": policies.delete_policy,
        "/schedulingpolicies/<policy_id>/filters/<unit_id>": policies.delete_part,
        "/schedulingpolicies/<policy_id>/weights/<unit_id>": policies.delete_part,
        "/schedulingpolicies/<policy_id>/balances/<unit_id>": policies.delete_part,
        "/schedulingpolicyunits/<unit_id>": policies.delete_unit,
    },
)
