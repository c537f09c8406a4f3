#!/bin/sh
# Runs a compiler through ccache. A precompiled header that is there already would be read in place
# of the headers it is to be made of: ccache would not see that those have changed. So it goes first.
# And it is of these headers to the byte: the compiler includes again what differs in a comment, and
# ccache takes texts for equal that do. No two runs make the same bytes of it: what is compiled with
# it goes by a digest of the headers (NAME.gch.sum).
export CCACHE_PCH_EXTSUM=1
case " $* " in
*" c++-header "*) ;;
*) exec ccache "$@" ;;
esac
before= made= read=
for argument; do
    case "$before" in
    -o) made="$argument" ;;
    -MF) read="$argument" ;;
    esac
    before="$argument"
done
rm -f "$made" "$made.sum"
CCACHE_EXTRAFILES="$(find "$(dirname "$0")/../csrc" gen -name '*.h' | LC_ALL=C sort | tr '\n' :)"
export CCACHE_EXTRAFILES
ccache "$@" || exit
grep -o '[^ ]*\.h\(xx\)\?\>' "$read" | grep -v '^/usr/' | xargs cat | sha256sum >"$made.sum"
