"""Templates, disks, storage domains and transfers."""

from __future__ import annotations

from ovirt_simulator.http.resources import named, storage, templates, transfers
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/templates": ("templates", templates.list_templates),
        "/templates/<template_id>/diskattachments": ("disk_attachments", templates.list_disk_attachments),
        "/diskprofiles": ("disk_profiles", named.DISK_PROFILES.list_all),
        "/disks": ("disks", storage.list_disks),
        "/storagedomains": ("storage_domains", storage.list_storage_domains),
        "/storagedomains/<domain_id>/disks": ("disks", storage.list_disks_of_domain),
    },
    reads={
        "/templates/<template_id>": templates.get_template,
        "/templates/<template_id>/diskattachments/<disk_id>": templates.get_disk_attachment,
        "/diskprofiles/<entity_id>": named.DISK_PROFILES.get,
        "/disks/<disk_id>": storage.get_disk,
        "/imagetransfers/<transfer_id>": transfers.get_transfer,
        "/storagedomains/<domain_id>": storage.get_storage_domain,
        "/storagedomains/<domain_id>/disks/<disk_id>": storage.get_disk_of_domain,
    },
    posts={
        "/templates": templates.post_template,
        "/disks": storage.post_disk,
        "/imagetransfers": transfers.post_transfer,
        "/imagetransfers/<transfer_id>/finalize": transfers.finalize,
        "/imagetransfers/<transfer_id>/cancel": transfers.cancel,
    },
    puts={
        "/disks/<disk_id>": storage.put_disk,
    },
    deletes={
        "/templates/<template_id>": templates.delete_template,
        "/disks/<disk_id>": storage.delete_disk,
        "/storagedomains/<domain_id>/disks/<disk_id>": storage.delete_disk,
    },
)
