#!/bin/sh
# Updates requirements/dev.txt and fuzz.txt: versions and hashes, but no registry address. lock.sh PYTHON
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$1" -m venv "$tmp/venv"
"$tmp/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
compile() {
    output=$1
    shift
    "$tmp/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
        --no-emit-index-url --no-emit-find-links --output-file "$output" "$@"
}
compile requirements/dev.txt pyproject.toml requirements/dev.in
compile requirements/fuzz.txt requirements/fuzz.in
if grep -nE '://' requirements/dev.txt requirements/fuzz.txt; then
    echo "lock.sh: the lock file must not name a host" >&2
    exit 1
fi
