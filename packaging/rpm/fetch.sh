#!/bin/sh
# Fetches what the locks name into a folder: wheels that EL8 can load, and sources of what is built.
# fetch.sh PYTHON FOLDER
set -eu
here="$(dirname "$0")"
rm -rf "$2"
"$1" -m pip download --quiet --disable-pip-version-check --dest "$2" --require-hashes --no-deps --no-build-isolation \
    --python-version 3.12 --implementation cp --abi cp312 --abi abi3 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 \
    --platform manylinux2014_x86_64 \
    --only-binary :all: --no-binary ovirt-engine-sdk-python,psycopg-c,pycurl \
    -r "$here/build-3.12.lock" -r "$here/requirements-3.12.lock"
