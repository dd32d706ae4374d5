# Has engine-backup save what the store of ovirt-placement holds, by each configuration, while its services run. What
# cannot be saved is reported, and does not keep the engine's own data from being saved.
if [ -n "${SCOPE_FILES}" ]; then
	mkdir -p "${tardir}/ovirt-placement"
	for configuration in /etc/ovirt-placement/*.toml; do
		[ -r "${configuration}" ] || continue
		name="$(basename "${configuration}" .toml)"
		if said="$(ovirt-placement store backup --config "${configuration}" \
			"${tardir}/ovirt-placement/${name}.backup" 2>&1)"; then
			output "- Store of ovirt-placement by ${configuration}"
		else
			output "- Store of ovirt-placement by ${configuration} NOT SAVED: ${said}"
		fi
	done
fi
