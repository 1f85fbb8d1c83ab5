#!/bin/sh
# Installs atheris in the checkout's virtual environment, if there is a wheel for this Python: fuzz.sh PYTHON
set -eu
python=$1
"$python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("atheris") is None)' && exit 0
"$python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements/fuzz.txt ||
    echo "fuzz.sh: atheris could not be installed; only the property tests run" >&2
