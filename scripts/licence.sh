#!/usr/bin/env bash
# Prints the licence of a file of the system: what its Debian package says of its copyright, and every
# common licence which that refers to. Fails where there is none.

set -euo pipefail
file="$1"
# The package may own the file under the path before /usr was merged.
package="$(dpkg-query -S "$file" 2>/dev/null || dpkg-query -S "${file#/usr}" 2>/dev/null || dpkg-query -S "*/${file##*/}")"
package="${package%%:*}"
copyright="/usr/share/doc/$package/copyright"
[ -s "$copyright" ]
printf '%s, of the Debian package %s\n\n' "${file##*/}" "$package"
cat "$copyright"
for licence in $(grep -o '/usr/share/common-licenses/[A-Za-z0-9.+-]*[A-Za-z0-9]' "$copyright" | sort -u); do
    [ -s "$licence" ] || continue
    printf '\n%s\n\n' "==== ${licence##*/} ===="
    cat "$licence"
done
