#!/usr/bin/env bash
# Builds without oneDNN, and runs the smoke tests without OpenBLAS: what a machine with nothing but a
# compiler gets. A second configure of the same folder, for no source but the providers'
# differs; the next ordinary build configures it back.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder="$(package plain)"
scripts/build.sh release -DFLAMBEAU_ONEDNN=OFF "-DFLAMBEAU_PACKAGE=$folder/flambeau"
cd "$folder"
export PYTHONPATH="$folder" FLAMBEAU_OPENBLAS=off
exec "$PY" -m pytest -q -p no:cacheprovider tests/smoke.py "$@"
