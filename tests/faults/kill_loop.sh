#!/usr/bin/env bash
# Eight producers, four consumers that make checkpoints and go on from them, and two reclaimers on one lake, as processes; random
# producers, reclaimers and consumers are killed with SIGKILL and started again. Meanwhile and afterwards every promise must be kept: fsck
# finds nothing, each consumer reads every step, once more only after a kill and then the same, every source offset comes once and in order,
# content is what the synthetic source says, and consumers of the same rank have read the same. When all is over, nothing is left in the lake
# but what the last checkpoints need: no batch, no orphan.
#
#   kill_loop.sh BACKEND [KILLS] [SEED]
#
#   BACKEND  dir:PATH or s3://bucket/prefix; the lake is made under a name of its own below it (and stays there on S3)
#   KILLS    how many kills, default 50. Who is killed when comes from SEED, default 1
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
producers=8 consumers=4 reclaimers=2 data_ranks=2 context_ranks=2
batches=$((20 + 5 * kills))
total=$((producers * batches))
rate=30
if [[ $1 == s3:* ]]; then rate=12; fi # slow enough that somebody is still there to be killed
lake=${1%/}/kill-loop-$$-$(date +%s)
folder=$(mktemp -d)
declare -A pid_of=() # by role and number: p0 .. p7, c0 .. c3, r0, r1

# Ends what this script started, and nothing else.
clean_up() {
  local pid
  for pid in "${pid_of[@]}"; do kill -9 "$pid" 2> /dev/null || true; done
  wait 2> /dev/null || true
  rm -rf "$folder"
  if [[ $lake == dir:* ]]; then rm -rf "${lake#dir:}"; fi
}
trap clean_up EXIT

discovery_of() { local names=(list probe gallop); echo "${names[$1 % 3]}"; }

start_p() {
  "$program" produce --backend "$lake" --producer "$1" --batches "$batches" --rate $rate --bytes 3001 \
    --data-ranks $data_ranks --context-ranks $context_ranks --discovery "$(discovery_of "$1")" --policy backoff-full --set base_s=0.01 --set cap_s=0.2 \
    > "$folder/producer-$1.out" 2> "$folder/producer-$1.err" &
  pid_of[p$1]=$!
}

# Consumers 0 and 1 read for rank 0,0, the others for rank 1,1. Each goes on from its newest checkpoint.
start_c() {
  "$program" consume --backend "$lake" --rank $(($1 / 2)),$(($1 / 2)) --follow --until $total --poll 0.1 --verify --discovery "$(discovery_of "$1")" \
    --checkpoint "consumer-$1" --checkpoint-kind named --checkpoint-every 20 --from-checkpoint "consumer-$1" \
    >> "$folder/consumer-$1.out" 2>> "$folder/consumer-$1.err" &
  pid_of[c$1]=$!
}

start_r() {
  "$program" reclaim --backend "$lake" --keep-last 1 --grace-s 1 --keep-versions 3 --follow --every-s 0.2 --discovery "$(discovery_of $(($1 + 1)))" \
    >> "$folder/reclaimer-$1.out" 2>> "$folder/reclaimer-$1.err" &
  pid_of[r$1]=$!
}

mkdir -p "$folder"
if [[ $lake == dir:* ]]; then mkdir -p "${lake#dir:}"; fi
for ((p = 0; p < producers; p++)); do start_p $p; done
for ((c = 0; c < consumers; c++)); do start_c $c; done
for ((tries = 0; tries < 100; tries++)); do # no reclaimer before every consumer holds what it needs
  held=$("$program" checkpoint list --backend "$lake" | grep -o 'consumer-[0-9]*$' | sort -u | wc -l || true)
  if ((held == consumers)); then break; fi
  sleep 0.1
done
((held == consumers)) || fail "the consumers made no checkpoint: $(cat "$folder"/consumer-*.err)"
for ((r = 0; r < reclaimers; r++)); do start_r $r; done

RANDOM=$seed
victims=(p0 p1 p2 p3 p4 p5 p6 p7 r0 r0 r1 r1 c0 c2)
killed=0
for ((k = 0; k < kills; k++)); do
  sleep "$(printf "0.%02d" $((RANDOM % 20 + 5)))"
  victim=${victims[RANDOM % ${#victims[@]}]}
  if kill -9 "${pid_of[$victim]}" 2> /dev/null; then killed=$((killed + 1)); fi
  status=0
  wait "${pid_of[$victim]}" 2> /dev/null || status=$?
  ((status == 0 || status == 137)) || fail "$victim had ended with exit status $status: $(tail -n 3 "$folder"/*"${victim#?}".err)"
  "start_${victim%?}" "${victim#?}"
  if ((k % 5 == 4)); then # beside everybody else, fsck must not cry wolf
    "$program" fsck --backend "$lake" > "$folder/fsck" 2>&1 || fail "fsck after $((k + 1)) kills: $(cat "$folder/fsck")"
  fi
done

for ((p = 0; p < producers; p++)); do
  wait "${pid_of[p$p]}" || fail "producer $p ended with exit status $?: $(cat "$folder/producer-$p.err")"
  unset "pid_of[p$p]"
done
for ((c = 0; c < consumers; c++)); do
  wait "${pid_of[c$c]}" || fail "consumer $c ended with exit status $?: $(cat "$folder/consumer-$c.err")"
  unset "pid_of[c$c]"
done
for ((r = 0; r < reclaimers; r++)); do
  kill -TERM "${pid_of[r$r]}"
  wait "${pid_of[r$r]}" || fail "reclaimer $r ended with exit status $?: $(cat "$folder/reclaimer-$r.err")"
  unset "pid_of[r$r]"
done

# Each consumer has read every step; a step read again, after a kill, was the same; no start left a gap.
for ((c = 0; c < consumers; c++)); do
  awk -v total=$total '
    $1 == "step" && NF == 14 {
      if ($2 > greatest + 0) { print "step " $2 " follows step " greatest - 1; bad = 1 }
      if ($2 in seen && seen[$2] != $0) { print "step " $2 " changed: " seen[$2] " became " $0; bad = 1 }
      if (!($2 in seen)) print $0 > "/dev/stderr"
      seen[$2] = $0
      if ($2 == greatest + 0) greatest = $2 + 1
    }
    END { if (greatest != total) { print "it ends at step " greatest + 0 ", expected " total; bad = 1 }; exit bad }
  ' "$folder/consumer-$c.out" 2> "$folder/steps-$c" > "$folder/judgement" || fail "consumer $c: $(cat "$folder/judgement")"
done
cmp "$folder/steps-0" "$folder/steps-1" >&2 || fail "two consumers of rank 0,0 read different steps"
cmp "$folder/steps-2" "$folder/steps-3" >&2 || fail "two consumers of rank 1,1 read different steps"

# One line a step: step S producer P epoch E sequence Q source B..E ...; each producer's offsets in order, none missing.
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
  }' "$folder/steps-0" >&2 || fail "the source offsets are not each there once and in order"

"$program" fsck --backend "$lake" --verify > "$folder/fsck" 2>&1 || fail "fsck: $(cat "$folder/fsck")"
deleted=$(cat "$folder"/reclaimer-*.out | awk '{ batches += $9; orphans += $11 } END { print batches + 0 " batches and " orphans + 0 " orphans" }')
"$program" reclaim --backend "$lake" --keep-last 1 --grace-s 0 --keep-versions 1 > "$folder/last" 2>&1 || fail "reclaim: $(cat "$folder/last")"
"$program" fsck --backend "$lake" --json > "$folder/fsck" 2>&1 || fail "fsck after the last round: $(cat "$folder/fsck")"
for expected in '"versions_checked":1,' '"entries":0,' '"orphans":0,' '"void_versions":0,' "\"trim_step\":$total," "\"checkpoints\":$consumers,"; do
  grep -qF "$expected" "$folder/fsck" || fail "after the last round fsck should say $expected: $(cat "$folder/fsck")"
done
echo "$killed of $kills kills hit a running process; $total steps; the reclaimers deleted $deleted while it ran (some both of them)"
cat "$folder/last"
