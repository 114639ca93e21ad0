#!/usr/bin/env bash
# Runs an experiment as a Slurm job array: task i is shard i of N, with a results file of its own.
#
#   slurm.sh submit SPEC FOLDER SHARDS [OPTION ...]   submit the array; prints the job's number. OPTIONs go to `lakestream run`
#   slurm.sh merge SPEC FOLDER SHARDS [OPTION ...]    join what is there into FOLDER/all.db and name what is missing; OPTIONs
#                                                     as of `lakestream merge`: those of --quick, --seed, --backend that were
#                                                     given to submit
#
# FOLDER must be on a file system that all nodes share. Tasks may be requeued at any time and any number of times: a task goes on
# from what its file holds. Shards are whole points (see experiments/runner.h): more shards than points are of no use.
# Partition, time limit, account and so on: by Slurm's own variables, such as SBATCH_PARTITION and SBATCH_TIMELIMIT.
#
#   LAKESTREAM       the program, default `lakestream` in PATH
#   CLUSTER_CPUS     processors, and so worker processes, a task; default 1
#   CLUSTER_RETRIES  how often a task whose program was killed (out of memory, say) requeues itself; default 3
#
# Exit status of submit: sbatch's. Of merge: 0 whole, 4 something is missing, 1 shards contradict each other. 2: wrong usage.
set -euo pipefail

usage() { awk 'NR > 1 && /^#/ { sub(/^# ?/, ""); print; next } NR > 1 { exit }' "$0" >&2; exit 2; }

submit() {
  local program
  program=$(type -P "${LAKESTREAM:-lakestream}") ||
    { echo "slurm.sh: no program ${LAKESTREAM:-lakestream}; put lakestream into PATH or name it by LAKESTREAM" >&2; exit 2; }
  [[ -r $spec ]] || { echo "slurm.sh: $spec cannot be read" >&2; exit 2; }
  mkdir -p "$folder"
  LAKESTREAM=$(realpath "$program") sbatch --parsable --job-name="lakestream-$(basename "$spec" .json)" --array="1-$shards" \
    --cpus-per-task="${CLUSTER_CPUS:-1}" --requeue --open-mode=append --output="$folder/shard-%a.log" --export=ALL \
    "$0" task "$spec" "$folder" "$shards" "$@"
}

# The program is a child, not an exec: its end by a signal shows here, and the task can ask for another go. When Slurm itself ends the
# task (preemption, `scontrol requeue`, a node lost), it requeues it too, and this script is gone by then.
task() {
  local shard=${SLURM_ARRAY_TASK_ID:?not a task of a job array} code=0
  echo "shard $shard/$shards on ${SLURMD_NODENAME:-?}, start $((${SLURM_RESTART_COUNT:-0} + 1))"
  "${LAKESTREAM:-lakestream}" run "$spec" --shard "$shard/$shards" -o "$folder/shard-$shard.db" \
    -j "${SLURM_CPUS_PER_TASK:-1}" "$@" || code=$?
  if ((code > 128 && code != 130 && ${SLURM_RESTART_COUNT:-0} < ${CLUSTER_RETRIES:-3})); then
    echo "shard $shard/$shards: the program was ended by signal $((code - 128)); requeued"
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_$shard"
    sleep 60 # until Slurm ends this task
  fi
  return "$code"
}

join() {
  local files=() shard
  for ((shard = 1; shard <= shards; shard++)); do
    [[ ! -e $folder/shard-$shard.db ]] || files+=("$folder/shard-$shard.db")
  done
  ((${#files[@]} > 0)) || { echo "slurm.sh: no shard's results in $folder yet" >&2; exit 4; }
  "${LAKESTREAM:-lakestream}" merge "$folder/all.db" "${files[@]}" --spec "$spec" --shards "$shards" "$@"
}

(($# >= 4)) || usage
action=$1
spec=$(realpath -m -- "$2")
folder=$(realpath -m -- "$3")
shards=$4
shift 4
[[ $shards =~ ^[1-9][0-9]{0,5}$ ]] || { echo "slurm.sh: SHARDS must be a number from 1 on, not '$shards'" >&2; exit 2; }
case $action in
  submit) submit "$@" ;;
  task) task "$@" ;;
  merge) join "$@" ;;
  *) usage ;;
esac
