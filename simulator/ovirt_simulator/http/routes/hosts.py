"""Hosts, and what belongs to them."""

from __future__ import annotations

from ovirt_simulator.http.resources import affinity_labels, host_actions, hosts, statistics, tags
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/hosts": ("hosts", hosts.list_hosts),
        "/hosts/<host_id>/statistics": ("statistics", statistics.list_of_host),
        "/hosts/<host_id>/tags": ("tags", tags.list_of_host),
        "/hosts/<host_id>/affinitylabels": ("affinity_labels", affinity_labels.list_of_host),
    },
    reads={
        "/hosts/<host_id>": hosts.get_host,
        "/hosts/<host_id>/statistics/<statistic_id>": statistics.get_of_host,
        "/hosts/<host_id>/tags/<tag_id>": tags.get_of_host,
    },
    posts={
        "/hosts/<host_id>/activate": host_actions.activate,
        "/hosts/<host_id>/deactivate": host_actions.deactivate,
        "/hosts/<host_id>/affinitylabels": affinity_labels.post_to_host,
        "/hosts/<host_id>/upgradecheck": host_actions.upgrade_check,
        "/hosts/<host_id>/tags": tags.post_to_host,
    },
    puts={
        "/hosts/<host_id>": hosts.put_host,
    },
    deletes={
        "/hosts/<host_id>": hosts.delete_host,
        "/hosts/<host_id>/tags/<tag_id>": tags.delete_of_host,
        "/hosts/<host_id>/affinitylabels/<label_id>": affinity_labels.delete_host,
    },
)
