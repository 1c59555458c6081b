#!/usr/bin/env bash
# Makes $2 an environment of this checkout that sees the dependencies installed in $1.
set -euo pipefail
env=$1 venv=$2
rm -rf "$venv"
"$env/bin/python" -m venv --without-pip "$venv"
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$site/dependencies.pth"
"$env/bin/pip" --python "$venv/bin/python" install -q --disable-pip-version-check \
    --no-deps --no-build-isolation -e .
