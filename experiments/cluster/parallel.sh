#!/usr/bin/env bash
# Runs an experiment in shards under GNU parallel, on this machine or on those of an ssh login file, and joins the results.
#
#   parallel.sh SPEC FOLDER SHARDS [OPTION ...]   OPTIONs (--quick, --seed S, --backend STORE) go to `lakestream run`
#
# Each shard writes FOLDER/shard-I.db and is one process. Interrupted or failed? The same command goes on: parallel skips the shards
# that its job log (FOLDER/joblog) has as done, and a shard goes on from what its file holds. At the end FOLDER/all.db holds
# everything. Shards are whole points (see experiments/runner.h): more shards than points are of no use.
#
#   LAKESTREAM        the program, default `lakestream` in PATH
#   CLUSTER_JOBS      shards at a time (a machine), default as many as there are processors
#   CLUSTER_RETRIES   how often a shard is tried, default 3
#   CLUSTER_MACHINES  an --sshloginfile of parallel's; FOLDER, SPEC and the program must be the same there (a shared file system)
#
# Exit status: 0 all there. 4: runs are missing, each is named. 1: shards contradict each other. 2: wrong usage, or FOLDER is
# another experiment's. 3: GNU parallel is not there.
set -euo pipefail

fail() { printf 'parallel.sh: %s\n' "$*" >&2; exit "${status:-2}"; }
usage() { awk 'NR > 1 && /^#/ { sub(/^# ?/, ""); print; next } NR > 1 { exit }' "$0" >&2; exit 2; }

(($# >= 3)) || usage
spec=$(realpath -m -- "$1")
folder=$(realpath -m -- "$2")
shards=$3
shift 3
[[ $shards =~ ^[1-9][0-9]{0,5}$ ]] || fail "SHARDS must be a number from 1 on, not '$shards'"
[[ -r $spec ]] || fail "$spec cannot be read"
program=$(type -P "${LAKESTREAM:-lakestream}") || fail "no program ${LAKESTREAM:-lakestream}; put it into PATH or name it by LAKESTREAM"
program=$(realpath "$program")
# moreutils has a `parallel` too.
[[ $(parallel --version 2> /dev/null | head -n 1) == GNU* ]] || status=3 fail "GNU parallel is not installed; on Debian: apt-get install parallel"

# The job log names shards by number only: it means nothing for another spec, another program or another number of shards.
mkdir -p "$folder"
job=$({ sha256sum < "$spec"; sha256sum < "$program"; echo "$shards $*"; } | sha256sum)
if [[ -e $folder/job && $(< "$folder/job") != "$job" ]]; then
  fail "$folder was made from another spec, program, number of shards or options; give another folder, or delete $folder/job and" \
    "$folder/joblog: what the shards' files hold is not run again where it still counts"
fi
echo "$job" > "$folder/job"

where=()
[[ -z ${CLUSTER_MACHINES:-} ]] || where=(--sshloginfile "$CLUSTER_MACHINES")
code=0
# --quote: names with blanks reach the program whole. One worker process a shard, as many shards share a machine.
seq "$shards" | parallel --will-cite --joblog "$folder/joblog" --resume-failed --retries "${CLUSTER_RETRIES:-3}" \
  --jobs "${CLUSTER_JOBS:-100%}" --line-buffer --quote "${where[@]}" \
  "$program" run "$spec" --shard "{}/$shards" -o "$folder/shard-{}.db" -j 1 "$@" || code=$?
((code == 0)) || echo "parallel.sh: $code shards failed (101: more than 100); see $folder/joblog" >&2

files=()
for ((shard = 1; shard <= shards; shard++)); do
  [[ ! -e $folder/shard-$shard.db ]] || files+=("$folder/shard-$shard.db")
done
((${#files[@]} > 0)) || status=4 fail "no shard left results in $folder"
exec "$program" merge "$folder/all.db" "${files[@]}" --spec "$spec" --shards "$shards" "$@"
