# Has engine-backup save the configurations of ovirt-placement and of its proxies, and plugins of your own. The store is
# saved by the hook of dobackup: a database that changes cannot be copied.
BACKUP_PATHS="${BACKUP_PATHS}
/etc/ovirt-placement
/etc/ovirt-scheduler-proxy
/usr/share/ovirt-scheduler-proxy/plugins"
