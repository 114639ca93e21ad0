#!/usr/bin/env bash
# A sweep in eight shards, two of them killed half-way and taken up again, under GNU parallel and under a real Slurm on this machine:
# joined, it must have the hash of the sweep in one piece. Also: shards that contradict each other, and shards that are missing.
# Usage: cluster.sh PROGRAM. Nothing is skipped: what cannot run is a failure. Takes a minute or two.
# Exit status 0: all of it held. 1: something did not; the folder with everything is kept and named. 2: wrong usage.
set -euo pipefail
export LC_ALL=C # decimal points

[[ $# -eq 1 ]] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
LAKESTREAM=$(realpath "$1")
export LAKESTREAM
source=$(realpath "$(dirname "$0")/..")
place=$(mktemp -d)
shards=8
spec=$place/cluster.json

leave() {
  local code=$? process
  # What still runs names this folder in its command line; nobody else's does.
  for process in $(pgrep -f -- "$place/" || true); do kill "$process" 2> /dev/null || true; done
  "$source/tests/servers/slurm.sh" stop "$place/slurm" || code=1
  if ((code == 0)); then rm -rf "$place"; else echo "cluster: FAILED; everything is in $place" >&2; fi
  exit "$code"
}
trap leave EXIT
trap 'exit 1' INT TERM
fail() { echo "cluster: $*" >&2; exit 1; }

# 200 points with a stopping rule: how many replications a point takes depends on its values.
write_spec() {
  cat > "$spec" << SPEC
{ "title": "cluster", "seed": 7,
  "replications": {"minimum": 2, "maximum": 5, "metric": "queue_wait_mean_s", "half_width": 0.05},
  "base": {"world": "queue", "queue": {"customers": $1, "arrival_rate_per_s": 0.5, "service": {"law": "exponential", "scale_s": 1}}},
  "sweep": [{"cartesian": {
    "queue.arrival_rate_per_s": [$(seq -s ', ' 0.04 0.04 0.8)],
    "queue.service.scale_s": [$(seq -s ', ' 0.1 0.1 1)]}}] }
SPEC
}

# So long that a shard takes some three seconds of processor time: it stores once a second, and must be killed between two stores.
# Not of wall time: what else the machine does now may be over later.
size_spec() {
  local TIMEFORMAT=%U used
  write_spec 50000
  { time "$LAKESTREAM" run "$spec" --shard "1/$shards" -o "$place/size.db" -j 1 > "$place/size.log" 2>&1; } 2> "$place/size"
  used=$(< "$place/size")
  write_spec "$(awk -v used="$used" 'BEGIN { printf "%d", 50000 * 3 / (used > 0.01 ? used : 0.01) }')"
}

hash_of() { "$LAKESTREAM" results hash "$1"; }
# 0 for a file that is not there yet; a writer is waited for.
stored() {
  [[ -s $1 ]] || { echo 0; return; }
  sqlite3 -cmd '.timeout 5000' "file:$1?mode=ro" 'SELECT count(*) FROM runs' 2> /dev/null || echo 0
}

# The program that works on a shard into this folder: its worker has the same words; the oldest is the parent.
process_of() { pgrep -o -f -- "^$LAKESTREAM run .* -o $1/shard-$2\.db( |\$)" || true; } # folder shard

# Waits until the shard has stored more runs than before and still works.
await_half() { # folder shard runs-before
  local tries=0
  until [[ -n $(process_of "$1" "$2") ]] && (($(stored "$1/shard-$2.db") > $3)); do
    ((tries++ < 600)) || fail "shard $2 was never seen half-way in a minute"
    sleep 0.1
  done
}

kill_half() { # folder shard runs-before
  local process
  await_half "$@"
  process=$(process_of "$1" "$2")
  if [[ -z $process ]] || ! kill -9 "$process"; then fail "shard $2 was done before it could be killed"; fi
  echo "cluster: shard $2 killed with $(stored "$1/shard-$2.db") runs stored"
}

# Its last start found some runs, made the others, and failed in none.
expect_taken_up() { # log shard
  local line
  line=$(grep -F "/shard-$2.db" "$1" | grep 'stored before' | tail -n 1)
  [[ $line =~ \(([1-9][0-9]*)\ new,\ ([1-9][0-9]*)\ stored\ before,\ 0\ failed\) ]] || fail "shard $2 was not taken up: $line"
}

expect_same() { # file how
  [[ $(hash_of "$1") == "$whole" ]] || fail "$2: another hash than in one piece"
  echo "cluster: $2: the hash of the run in one piece"
}

under_parallel() {
  local folder=$place/parallel code=0
  CLUSTER_RETRIES=1 "$source/experiments/cluster/parallel.sh" "$spec" "$folder" "$shards" > "$place/parallel-1.log" 2>&1 &
  background=$!
  kill_half "$folder" 3 0
  kill_half "$folder" 6 0
  wait "$background" || code=$?
  ((code == 4)) || fail "parallel.sh with two shards killed gave $code instead of 4"
  [[ $(grep -o 'shard [0-9]*/8$' "$place/parallel-1.log" | sort -u | tr '\n' ' ') == 'shard 3/8 shard 6/8 ' ]] ||
    fail "it should miss shards 3 and 6"
  # The same command again: only those two run. One is killed once more, and parallel itself tries again.
  code=0
  "$source/experiments/cluster/parallel.sh" "$spec" "$folder" "$shards" > "$place/parallel-2.log" 2>&1 &
  background=$!
  kill_half "$folder" 6 -1 # at once: little may be left to do
  wait "$background" || code=$?
  ((code == 0)) || fail "parallel.sh, taken up, gave $code"
  [[ $(grep -c 'stored before' "$place/parallel-2.log") == 2 ]] || fail "other shards than 3 and 6 ran again"
  expect_taken_up "$place/parallel-2.log" 3
  expect_taken_up "$place/parallel-2.log" 6
  expect_same "$folder/all.db" "GNU parallel"
}

under_slurm() {
  local folder=$place/slurm-run job settings tries=0
  settings=$("$source/tests/servers/slurm.sh" start "$place/slurm") || fail "no Slurm"
  export "${settings?}"
  job=$("$source/experiments/cluster/slurm.sh" submit "$spec" "$folder" "$shards")
  kill_half "$folder" 3 0 # requeues itself
  await_half "$folder" 6 0
  scontrol requeue "${job}_6"
  echo "cluster: shard 6 requeued with $(stored "$folder/shard-6.db") runs stored"
  while [[ -n $(squeue --noheader --jobs "$job" 2> /dev/null) ]]; do
    ((tries++ < 600)) || { squeue >&2; fail "the jobs are not done after two minutes"; }
    sleep 0.2
  done
  for shard in 3 6; do
    grep -q "^shard $shard/$shards on .*, start 2$" "$folder/shard-$shard.log" || fail "shard $shard was started once only"
    expect_taken_up "$folder/shard-$shard.log" "$shard"
  done
  "$source/experiments/cluster/slurm.sh" merge "$spec" "$folder" "$shards" || fail "slurm.sh merge gave $?"
  expect_same "$folder/all.db" "Slurm $(scontrol --version | cut -d' ' -f2)"
}

# Both of what merge must not do: join what contradicts, and call whole what is not.
refusals() {
  local code=0
  cp "$place/parallel/shard-5.db" "$place/wrong.db"
  sqlite3 "$place/wrong.db" "UPDATE metrics SET value = value + 1 WHERE name = 'queue_wait_mean_s' AND run = (SELECT min(id) FROM runs)"
  "$LAKESTREAM" merge "$place/parallel/all.db" "$place/wrong.db" > "$place/refusal.log" 2>&1 || code=$?
  ((code == 1)) || fail "a contradiction gave $code"
  grep -q 'queue_wait_mean_s is .* here and .* there' "$place/refusal.log" || fail "the contradiction is not named"
  expect_same "$place/parallel/all.db" "a contradiction refused"
  code=0
  "$LAKESTREAM" merge "$place/part.db" "$place"/parallel/shard-[1-46-8].db --spec "$spec" --shards 8 > "$place/missing.log" || code=$?
  ((code == 4)) || fail "a missing shard gave $code"
  [[ $(grep -c 'shard 5/8$' "$place/missing.log") == 25 && $(grep -c '^missing' "$place/missing.log") == 25 ]] ||
    fail "the 25 points of shard 5 should be missing"
  "$LAKESTREAM" merge "$place/part.db" "$place"/parallel/shard-*.db --spec "$spec" > "$place/missing.log" || fail "the whole is not whole"
  expect_same "$place/part.db" "a shard that came late"
}

for program in parallel sqlite3 pgrep; do
  type -P "$program" > /dev/null || fail "$program is not installed; run './setup.sh cluster'"
done
size_spec
"$LAKESTREAM" run "$spec" -o "$place/whole.db"
whole=$(hash_of "$place/whole.db")
under_parallel
under_slurm
refusals
echo "cluster: all held"
