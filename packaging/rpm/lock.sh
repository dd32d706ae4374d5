#!/bin/sh
# Locks what the RPMs hold of others, in versions that Python 3.12 and EL8's libraries can load: lock.sh PYTHON FOLDER
set -eu
cd "$(dirname "$0")/../.."
[ -x "$2/bin/uv" ] || { "$1" -m venv "$2" && "$2/bin/python" -m pip install --quiet uv; }
for name in requirements build; do
    "$2/bin/uv" pip compile --quiet --upgrade --generate-hashes --annotation-style line --no-header \
        --python-version 3.12 --python-platform x86_64-manylinux_2_28 \
        --no-emit-package ovirt-placement --no-emit-package ovirt-placement-simulator \
        "packaging/rpm/$name.in" --output-file "packaging/rpm/$name-3.12.lock"
done
