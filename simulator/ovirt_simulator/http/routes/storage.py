"""Templates, disks, storage domains and transfers."""

from __future__ import annotations

from ovirt_simulator.http.resources import (
    disk_snapshots,
    named,
    statistics,
    storage,
    storage_domains,
    templates,
    transfers,
)
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/templates": ("templates", templates.list_templates),
        "/templates/<template_id>/diskattachments": ("disk_attachments", templates.list_disk_attachments),
        "/diskprofiles": ("disk_profiles", named.DISK_PROFILES.list_all),
        "/disks": ("disks", storage.list_disks),
        "/disks/<disk_id>/statistics": ("statistics", statistics.list_of_disk),
        "/disks/<disk_id>/disksnapshots": ("disk_snapshots", disk_snapshots.list_of_disk),
        "/storagedomains": ("storage_domains", storage_domains.list_all),
        "/storagedomains/<domain_id>/disks": ("disks", storage.list_disks_of_domain),
    },
    reads={
        "/templates/<template_id>": templates.get_template,
        "/templates/<template_id>/diskattachments/<disk_id>": templates.get_disk_attachment,
        "/diskprofiles/<entity_id>": named.DISK_PROFILES.get,
        "/disks/<disk_id>": storage.get_disk,
        "/disks/<disk_id>/statistics/<statistic_id>": statistics.get_of_disk,
        "/disks/<disk_id>/disksnapshots/<image_id>": disk_snapshots.get_of_disk,
        "/imagetransfers/<transfer_id>": transfers.get_transfer,
        "/storagedomains/<domain_id>": storage_domains.get,
        "/storagedomains/<domain_id>/disks/<disk_id>": storage.get_disk_of_domain,
    },
    posts={
        "/templates": templates.post_template,
        "/disks": storage.post_disk,
        "/disks/<disk_id>/copy": storage.copy,
        "/disks/<disk_id>/move": storage.move,
        "/storagedomains/<domain_id>/disks/<disk_id>/copy": storage.copy,
        "/storagedomains/<domain_id>/disks/<disk_id>/move": storage.move,
        "/imagetransfers": transfers.post_transfer,
        "/imagetransfers/<transfer_id>/finalize": transfers.finalize,
        "/imagetransfers/<transfer_id>/cancel": transfers.cancel,
    },
    puts={
        "/storagedomains/<domain_id>": storage_domains.put,
        "/disks/<disk_id>": storage.put_disk,
    },
    deletes={
        "/templates/<template_id>": templates.delete_template,
        "/disks/<disk_id>": storage.delete_disk,
        "/storagedomains/<domain_id>/disks/<disk_id>": storage.delete_disk,
    },
)
