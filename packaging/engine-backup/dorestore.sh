# Has engine-backup hand out the saved store of ovirt-placement. It is brought back by hand, as its services must not run
# meanwhile, and only the release that saved it reads it.
if [ -n "${SCOPE_FILES}" ] && [ -d "${TEMP_FOLDER}/ovirt-placement" ]; then
	# Not in the folder of the services: there their group may put links where root writes.
	restored=/var/lib/ovirt-placement-restored
	mkdir -p -m 700 "${restored}"
	for saved in "${TEMP_FOLDER}"/ovirt-placement/*.backup; do
		[ -r "${saved}" ] || continue
		name="$(basename "${saved}" .backup)"
		if cp -p "${saved}" "${restored}/${name}.backup"; then
			output "- Store of ovirt-placement: bring it back, before its services start, by"
			output "    ovirt-placement store restore --config /etc/ovirt-placement/${name}.toml ${restored}/${name}.backup"
		else
			output "- Store of ovirt-placement by ${name}.toml NOT RESTORED: cannot write to ${restored}"
		fi
	done
fi
