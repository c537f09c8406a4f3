#!/usr/bin/env bash
# Builds without the optional libraries (oneDNN, OpenBLAS) and runs the smoke tests: what a machine with
# nothing but a compiler gets. No source but the providers' differs, so the compiler cache has the rest.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder="$(package plain)"
scripts/build.sh plain -DFLAMBEAU_ONEDNN=OFF -DFLAMBEAU_OPENBLAS=OFF \
    "-DFLAMBEAU_PACKAGE=$folder/flambeau"
cd "$folder"
export PYTHONPATH="$folder"
exec "$PY" -m pytest -q -p no:cacheprovider tests/smoke.py "$@"
