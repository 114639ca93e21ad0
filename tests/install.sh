#!/bin/sh
# What a stranger does: installs into a folder of his own, builds a policy and a program against the installed headers and library with
# pkg-config, checks the one and runs the other. Fails when anything of it fails. Usage: install.sh BUILD-FOLDER
set -eu
build=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
make -s install BUILD="$build" PREFIX="$place/usr" >"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
export PKG_CONFIG_PATH="$place/usr/lib/pkgconfig" LD_LIBRARY_PATH="$place/usr/lib" PATH="$place/usr/bin:$PATH"
cp -r examples/policy examples/embed "$place/"

make -s -C "$place/policy" clean test >"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
echo "install: a policy outside the tree builds and passes policy-test"

make -s -C "$place/embed" clean embed >"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
"$place/embed/embed" >"$place/log" || { cat "$place/log"; exit 1; }
tail -n 1 "$place/log" | grep -qx '40 of 40 steps' || { cat "$place/log"; exit 1; }
echo "install: producers and a consumer run in a loop that is not ours"

for header in $(cd "$place/usr/include/lakestream" && find . -name '*.h'); do
    echo "#include \"$header\"" >"$place/alone.c"
    ${CC:-gcc} -std=c17 -D_GNU_SOURCE -Wall -Werror -I"$place/usr/include/lakestream" -fsyntax-only "$place/alone.c"
done
echo "install: every public header compiles alone"

foreign=$(nm -D --defined-only "$place/usr/lib/liblakestream.so" | awk '$3 !~ /^ls_/ && $2 != "A" { print $3 }')
[ -z "$foreign" ] || { echo "install: the library exports $foreign"; exit 1; }
nm -D --defined-only "$place/usr/lib/liblakestream.so" | grep -q ' ls_producer_step' || { echo "install: ls_producer_step is not exported"; exit 1; }
if nm -D --defined-only "$place/usr/lib/liblakestream.so" | grep -q ' ls_sign'; then echo "install: internals are exported"; exit 1; fi
echo "install: the library exports $(nm -D --defined-only "$place/usr/lib/liblakestream.so" | grep -c ' ls_') functions and tables, all ls_"

"$place/usr/bin/lakestream" completion bash >"$place/completion"
bash -n "$place/completion"
grep -q '^.TH LAKESTREAM 1' "$place/usr/share/man/man1/lakestream.1"
echo "install: completion parses, the manual is there"
