#!/bin/sh
# Builds the source RPM and the RPMs: build.sh PYTHON WHEELS FOLDER [RPMBUILD'S OPTIONS]
# PYTHON runs this; the interpreter that the RPMs are for is 3.12 (RPM_PYTHON names one), of this machine.
set -eu
python="$1"
wheels="$(realpath "$2")"
mkdir -p "$3/sources"
top="$(realpath "$3")"
shift 3
cd "$(dirname "$0")/../.."

SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
"$python" packaging/rpm/make_spec.py "$SOURCE_DATE_EPOCH" > "$top/ovirt-placement.spec"
version="$(sed -n 's/^Version: //p' "$top/ovirt-placement.spec")"
"$python" -c 'import sys, setuptools.build_meta as build; build.build_sdist(sys.argv[1])' "$top/sources" >/dev/null
tar -C "$(dirname "$wheels")" -cf "$top/sources/ovirt-placement-wheels-$version.tar" --transform 's|^[^/]*|wheels|' \
    "$(basename "$wheels")"
# Apart, since packages that are built together with their sources name these by a digest, and archives of sources
# differ from build to build.
build() {
    rpmbuild --quiet "$@" --define "_topdir $top" --define "_sourcedir $top/sources" --define "_rpmdir $top/rpms" \
        --define "_srcrpmdir $top" ${RPM_PYTHON:+--define "python $RPM_PYTHON"} "$top/ovirt-placement.spec"
}
build -bs --define "for_tests %{nil}" "$@"
build -bb "$@"
