#!/usr/bin/env bash
# Eight producers and four consumers on one lake, as processes; random producers are killed with SIGKILL and started again.
# Meanwhile and afterwards every promise must be kept: fsck finds nothing, every source offset is there once and in order, content is what the
# synthetic source says, and consumers of the same rank have read the same bytes.
#
#   kill_loop.sh BACKEND [KILLS] [SEED]
#
#   BACKEND  dir:PATH or s3://bucket/prefix; the lake is made under a name of its own below it (and stays there on S3)
#   KILLS    how many kills, default 50. Which producer is killed when comes from SEED, default 1
#   LAKESTREAM (environment)  the program; default build/lakestream
#
# Exit status 0: all promises kept. 1: one was broken, or a process failed; what was seen is on stderr. 2: wrong usage.
set -euo pipefail

usage() { awk 'NR > 1 && /^#/ { sub(/^# ?/, ""); print; next } NR > 1 { exit }' "$0" >&2; exit 2; }
fail() { printf 'kill_loop.sh: %s\n' "$*" >&2; exit 1; }
(($# >= 1 && $# <= 3)) || usage
kills=${2:-50} seed=${3:-1}
[[ $1 == dir:?* || $1 == s3://?* ]] && [[ $kills =~ ^[0-9]+$ && $seed =~ ^[0-9]+$ ]] || usage

program=${LAKESTREAM:-build/lakestream}
producers=8 data_ranks=2 context_ranks=2
batches=$((20 + 5 * kills))
total=$((producers * batches))
lake=${1%/}/kill-loop-$$-$(date +%s)
folder=$(mktemp -d)
declare -A pid_of=()
consumers=()

# Ends what this script started, and nothing else.
clean_up() {
  local pid
  for pid in "${pid_of[@]}" "${consumers[@]}"; do kill -9 "$pid" 2> /dev/null || true; done
  wait 2> /dev/null || true
  rm -rf "$folder"
  if [[ $lake == dir:* ]]; then rm -rf "${lake#dir:}"; fi
}
trap clean_up EXIT

start_producer() {
  "$program" produce --backend "$lake" --producer "$1" --batches "$batches" --rate 30 --bytes 3001 \
    --data-ranks $data_ranks --context-ranks $context_ranks --policy backoff-full --set base_s=0.01 --set cap_s=0.2 \
    > "$folder/producer-$1.out" 2> "$folder/producer-$1.err" &
  pid_of[$1]=$!
}

mkdir -p "$folder"
if [[ $lake == dir:* ]]; then mkdir -p "${lake#dir:}"; fi
for ((p = 0; p < producers; p++)); do start_producer $p; done
for ((c = 0; c < 4; c++)); do
  "$program" consume --backend "$lake" --rank $((c / 2)),$((c / 2)) --follow --steps $total --poll 0.1 --verify \
    --output "$folder/consumer-$c.bytes" > "$folder/consumer-$c.out" 2>&1 &
  consumers+=($!)
done

RANDOM=$seed
killed=0
for ((k = 0; k < kills; k++)); do
  sleep "$(printf "0.%02d" $((RANDOM % 20 + 5)))"
  victim=$((RANDOM % producers))
  if kill -9 "${pid_of[$victim]}" 2> /dev/null; then killed=$((killed + 1)); fi
  wait "${pid_of[$victim]}" 2> /dev/null || true
  start_producer $victim
  if ((k % 5 == 4)); then # beside everybody else, fsck must not cry wolf
    "$program" fsck --backend "$lake" > "$folder/fsck" 2>&1 || fail "fsck after $((k + 1)) kills: $(cat "$folder/fsck")"
  fi
done

for ((p = 0; p < producers; p++)); do
  wait "${pid_of[$p]}" || fail "producer $p ended with exit status $?: $(cat "$folder/producer-$p.err")"
done
pid_of=()
for ((c = 0; c < 4; c++)); do
  wait "${consumers[$c]}" || fail "consumer $c ended with exit status $?: $(cat "$folder/consumer-$c.out")"
done
consumers=()
cmp "$folder/consumer-0.bytes" "$folder/consumer-1.bytes" >&2 || fail "two consumers of rank 0,0 read different bytes"
cmp "$folder/consumer-2.bytes" "$folder/consumer-3.bytes" >&2 || fail "two consumers of rank 1,1 read different bytes"
[[ -s $folder/consumer-0.bytes ]] || fail "the consumers read nothing"

# One line a step: step S producer P epoch E sequence Q source B..E ...; each producer's offsets in order, none missing.
"$program" consume --backend "$lake" --rank 0,1 > "$folder/steps" || fail "reading the steps failed"
awk -v producers=$producers -v batches=$batches '
  $1 == "step" {
    split($10, source, /\.\./)
    if ($2 != steps++) { print "step " $2 " out of order"; bad = 1 }
    if (source[1] != next_of[$4] + 0) { print "producer " $4 ": offset " source[1] ", expected " next_of[$4] + 0; bad = 1 }
    next_of[$4] = source[2]
  }
  END {
    if (steps != producers * batches) { print steps + 0 " steps, expected " producers * batches; bad = 1 }
    for (p = 0; p < producers; p++) if (next_of[p] != batches) { print "producer " p " ends at " next_of[p] + 0; bad = 1 }
    exit bad
  }' "$folder/steps" >&2 || fail "the source offsets are not each there once and in order"

"$program" fsck --backend "$lake" --verify > "$folder/fsck" 2>&1 || fail "fsck: $(cat "$folder/fsck")"
echo "$killed of $kills kills hit a running producer; $total steps"
cat "$folder/fsck"
