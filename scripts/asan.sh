#!/usr/bin/env bash
# Runs the tests under the address and undefined-behaviour sanitizers, in a copy of the tree, so that
# the ordinary build stays as it is. Arguments go to pytest.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

copy="$ROOT/build/asan/tree"
mkdir -p "$copy"
for item in CMakeLists.txt cmake csrc flambeau tests tools docs examples pyproject.toml README.md \
    CONTRIBUTING.md; do
    [ -e "$item" ] || continue
    rm -rf "${copy:?}/$item"
    cp -rp "$item" "$copy/$item"
done
rm -f "$copy"/flambeau/_C*.so
cd "$copy"
options=(-G Ninja -DCMAKE_BUILD_TYPE=Release "-DPython_EXECUTABLE=$PY"
    -DFLAMBEAU_SANITIZE=address,undefined)
have ccache && options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S . -B ../cmake "${options[@]}" >/dev/null
cmake --build ../cmake --parallel "$JOBS"

# The interpreter is not instrumented, so the runtimes have to be loaded before anything else.
LD_PRELOAD="$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libubsan.so):$(
    g++ -print-file-name=libstdc++.so)"
export LD_PRELOAD
# Python itself leaks at exit; leaks of tensors are found by the allocator's own balance.
export ASAN_OPTIONS="detect_leaks=0:abort_on_error=1:allocator_may_return_null=1"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
export PYTHONMALLOC=malloc PYTHONPATH="$copy"
exec "$PY" -m pytest -q -p no:cacheprovider "$@"
