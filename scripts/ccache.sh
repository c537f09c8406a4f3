#!/bin/sh
# Runs a compiler through ccache. A precompiled header that is there already would be read in place
# of the headers it is to be made of: ccache would not see that those have changed. So it goes first.
before=
case " $* " in
*" c++-header "*)
    for argument; do
        [ "$before" = -o ] && rm -f "$argument"
        before="$argument"
    done
    ;;
esac
exec ccache "$@"
