#!/usr/bin/env bash
# As asan.sh, but with guard pages in place of sanitizers: a tensor's memory ends at a page that cannot
# be touched, and is unmapped when freed. Compiles five files, where the sanitizers compile all.
# guard.sh [pytest options], guard.sh fuzz [options of tools.fuzz], guard.sh python [arguments].

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder="$(package guard)"
scripts/build.sh guard -DFLAMBEAU_GUARD_PAGES=ON "-DFLAMBEAU_PACKAGE=$folder/flambeau"
cd "$folder"
export PYTHONPATH="$folder" OMP_NUM_THREADS=2
case "${1:-}" in
    fuzz) exec "$PY" -m tools.fuzz "${@:2}" ;;
    python) exec "$PY" "${@:2}" ;;
    *) exec "$PY" -m pytest -q -p no:cacheprovider "$@" ;;
esac
