"""Hosts, and what belongs to them."""

from __future__ import annotations

from ovirt_simulator.http.resources import (
    affinity_labels,
    assigned_permissions,
    fence_agents,
    host_actions,
    host_nics,
    hosts,
    permissions,
    statistics,
    tags,
)
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/hosts/<host_id>/permissions": ("permissions", assigned_permissions.OF_HOST.list_all),
        "/hosts": ("hosts", hosts.list_hosts),
        "/hosts/<host_id>/statistics": ("statistics", statistics.list_of_host),
        "/hosts/<host_id>/nics": ("host_nics", host_nics.list_all),
        "/hosts/<host_id>/nics/<nic_id>/statistics": ("statistics", statistics.list_of_host_nic),
        "/hosts/<host_id>/tags": ("tags", tags.list_of_host),
        "/hosts/<host_id>/affinitylabels": ("affinity_labels", affinity_labels.list_of_host),
        "/hosts/<host_id>/fenceagents": ("agents", fence_agents.list_agents),
    },
    reads={
        "/hosts/<host_id>/permissions/<permission_id>": assigned_permissions.OF_HOST.get,
        "/hosts/<host_id>": hosts.get_host,
        "/hosts/<host_id>/affinitylabels/<label_id>": affinity_labels.get_label,
        "/hosts/<host_id>/nics/<nic_id>": host_nics.get,
        "/hosts/<host_id>/nics/<nic_id>/statistics/<statistic_id>": statistics.get_of_host_nic,
        "/hosts/<host_id>/statistics/<statistic_id>": statistics.get_of_host,
        "/hosts/<host_id>/tags/<tag_id>": tags.get_of_host,
        "/hosts/<host_id>/fenceagents/<agent_id>": fence_agents.get_agent,
    },
    posts={
        "/hosts/<host_id>/permissions": assigned_permissions.OF_HOST.post,
        "/hosts": hosts.post_host,
        "/hosts/<host_id>/install": host_actions.install,
        "/hosts/<host_id>/fenceagents": fence_agents.post_agent,
        "/hosts/<host_id>/activate": host_actions.activate,
        "/hosts/<host_id>/deactivate": host_actions.deactivate,
        "/hosts/<host_id>/affinitylabels": affinity_labels.post_to_host,
        "/hosts/<host_id>/upgradecheck": host_actions.upgrade_check,
        "/hosts/<host_id>/upgrade": host_actions.upgrade,
        "/hosts/<host_id>/tags": tags.post_to_host,
    },
    puts={
        "/hosts/<host_id>/fenceagents/<agent_id>": fence_agents.put_agent,
        "/hosts/<host_id>": hosts.put_host,
    },
    deletes={
        "/hosts/<host_id>/permissions/<permission_id>": permissions.delete,
        "/hosts/<host_id>/fenceagents/<agent_id>": fence_agents.delete_agent,
        "/hosts/<host_id>": hosts.delete_host,
        "/hosts/<host_id>/tags/<tag_id>": tags.delete_of_host,
        "/hosts/<host_id>/affinitylabels/<label_id>": affinity_labels.delete_host,
    },
)
