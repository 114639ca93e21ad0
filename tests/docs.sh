#!/bin/sh
# Runs every ```sh block of the documents, in order, each document in an empty folder of its own; the first command that fails ends it.
# Usage: docs.sh PROGRAM DOCUMENT...
set -eu
program=$(realpath "$1")
shift
LAKESTREAM_SOURCE=$(realpath "$(dirname "$0")/..")
PATH=$(dirname "$program"):$PATH
export LAKESTREAM_SOURCE PATH
for document; do
    place=$(mktemp -d)
    { echo 'set -eu'; awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$document"; } >"$place/commands.sh"
    count=$(grep -c '^```sh$' "$document")
    if ! (cd "$place" && sh commands.sh >output 2>&1); then
        tail -n 30 "$place/output"
        echo "docs: $document: a command failed"
        exit 1
    fi
    rm -rf "$place"
    echo "docs: $document: $count blocks run"
done
