#!/usr/bin/env bash
# Builds the extension in place: build.sh [NAME [cmake options]]. NAME is the folder under build/.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

name="${1:-release}"
shift || true
[ -f CMakeLists.txt ] || die "there is no CMakeLists.txt here"
# Stated every time, for a folder remembers the options it was last configured with.
options=(-G Ninja -DCMAKE_BUILD_TYPE=Release "-DPython_EXECUTABLE=$PY" -DFLAMBEAU_ONEDNN=ON
    "-DFLAMBEAU_PACKAGE=$ROOT/flambeau")
if have ccache && [ -z "${NO_CCACHE:-}" ]; then
    options+=("-DCMAKE_CXX_COMPILER_LAUNCHER=$ROOT/scripts/ccache.sh")
    # Checkouts share results. The namespace sets aside what was cached with precompiled headers that were not of the code.
    export CCACHE_BASEDIR="$ROOT" CCACHE_NOHASHDIR=1 CCACHE_NAMESPACE=flambeau-2
    export CCACHE_SLOPPINESS=pch_defines,time_macros # without which precompiled headers are not cached
fi
start=$SECONDS
log="build/$name/configure.log"
mkdir -p "build/$name"
exec 9>"build/$name/lock" && flock 9 # two builds at once wait for each other
cmake -S . -B "build/$name" "${options[@]}" "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build "build/$name" --parallel "$JOBS"
say "built $name in $((SECONDS - start)) s"
