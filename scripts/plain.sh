#!/usr/bin/env bash
# Builds without the optional libraries (oneDNN, OpenBLAS) and runs the smoke tests: what a machine with
# nothing but a compiler gets. A second configure of the same folder, for no source but the providers'
# differs; the next ordinary build configures it back.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder="$(package plain)"
scripts/build.sh release -DFLAMBEAU_ONEDNN=OFF -DFLAMBEAU_OPENBLAS=OFF \
    "-DFLAMBEAU_PACKAGE=$folder/flambeau"
cd "$folder"
export PYTHONPATH="$folder"
exec "$PY" -m pytest -q -p no:cacheprovider tests/smoke.py "$@"
