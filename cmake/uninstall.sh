#!/bin/sh
# uninstall.sh MANIFEST PREFIX: removes the files of an installation and the folders it leaves empty.
manifest=$1
prefix=$2
if [ ! -r "$manifest" ]; then
    echo "uninstall: $manifest is missing: nothing was installed from this build" >&2
    exit 1
fi
while IFS= read -r file || [ -n "$file" ]; do
    case $file in
        "$prefix"/*) rm -f -- "$file" && echo "removed $file" ;;
        *) echo "uninstall: $file is not below $prefix: left alone (was it another PREFIX?)" >&2 ;;
    esac
done < "$manifest"
# Own folders only; shared ones such as bin/ and lib/ go when nothing is left in them.
while IFS= read -r file || [ -n "$file" ]; do
    case $file in
        "$prefix"/*)
            folder=$(dirname -- "$file")
            while [ "$folder" != "$prefix" ] && rmdir -- "$folder" 2>/dev/null; do folder=$(dirname -- "$folder"); done ;;
    esac
done < "$manifest"
