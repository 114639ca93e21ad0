#!/usr/bin/env bash
# Runs a real Slurm for the tests: one controller and one node, on this machine, for whoever calls it, without systemd,
# accounting or cgroups. Everything listens on 127.0.0.1 only and lives in one folder, munge's key and socket included: a Slurm
# that the machine has already is neither used nor disturbed. Nothing survives `stop`.
#
#   slurm.sh start FOLDER [PORT]   controller on PORT (default 17817), node on PORT+1; prints what a client needs as name=value
#                                  lines: export them, then sbatch, squeue and scontrol talk to this Slurm
#   slurm.sh stop FOLDER           kill the daemons and the jobs and delete FOLDER
#
# FOLDER must not exist yet, or have been made by this script (a leftover of a killed run is cleared first).
# Exit status 0: done. 1: it could not be started, the reason is on stderr. 2: wrong usage. 3: packages missing.
#
#   SLURM_CPUS  processors that the node claims to have, default as many as there are
set -euo pipefail

stamp=made-by-slurm.sh
# shellcheck source=tests/servers/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

# The daemons are in sbin, which need not be in an ordinary user's PATH.
PATH=$PATH:/usr/sbin:/sbin

need_packages() {
  need_programs cluster "slurmctld slurmd slurm-client munge" slurmctld slurmd sbatch scontrol sinfo munged
}

# This folder's daemons and everything they started, jobs included: the daemons are told by the configuration or socket in their
# command line, the rest by SLURM_CONF in their environment. A munged renames nothing; a slurmstepd shows its job only.
processes() {
  local entry
  for entry in /proc/[0-9]*; do
    [[ -r $entry/cmdline && ${entry#/proc/} != "$$" && ${entry#/proc/} != "$BASHPID" ]] || continue
    case $(tr '\0' '\n' 2> /dev/null < "$entry/cmdline" | head -n 1) in
      *slurmctld | *slurmd | *munged)
        if tr '\0' '\n' 2> /dev/null < "$entry/cmdline" | grep -qxF -e "$folder/slurm.conf" -e "--socket=$folder/munge.socket"; then
          echo "${entry#/proc/}"
        fi ;;
      *)
        # What slurmd starts carries this; a caller that exported SLURM_CONF does not.
        if tr '\0' '\n' 2> /dev/null < "$entry/environ" | grep -qxF -e "LAKESTREAM_TEST_SLURMD=$folder"; then
          echo "${entry#/proc/}"
        fi ;;
    esac
  done
}

# The reasons behind the unusual settings:
#   proctrack, task     no cgroups, which a container may not hand on
#   ReturnToService     a node that was away comes back by itself
#   SlurmctldParameters, SlurmdParameters   the machine is what the file says, whatever the kernel shows of it
#   SchedulerParameters, batch_sched_delay  a test should not wait for a scheduler that looks every half minute
#   cred_expire         a requeued job waits this long, two minutes by default; 5 s is the least
#   KillWait            seconds between SIGTERM and SIGKILL when a job is requeued
configuration() {
  local user
  user=$(id -un)
  cat << CONF
ClusterName=lakestream
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
PlugStackConfig=$folder/plugstack.conf
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=3600
KillWait=2
JobRequeue=1
NodeName=$host NodeAddr=127.0.0.1 NodeHostname=$host CPUs=$cpus State=UNKNOWN
PartitionName=test Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
}

bring_up() {
  export SLURM_CONF=$folder/slurm.conf
  (umask 077; head -c 128 /dev/urandom > "$folder/munge.key")
  : > "$folder/plugstack.conf"
  configuration > "$SLURM_CONF"
  # --force: munged wants no folder above its socket to be writable by others, and /tmp is.
  munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --log-file="$folder/munged.log" \
    --pid-file="$folder/munged.pid" --seed-file="$folder/munge.seed" --num-threads=2
  slurmctld -f "$SLURM_CONF" -c
  LAKESTREAM_TEST_SLURMD=$folder slurmd -f "$SLURM_CONF" -N "$host"
  local waited=0
  until [[ $(sinfo --noheader --format=%t 2> /dev/null) == idle ]]; do
    ((waited++ < 150)) || { echo "the node is not idle after 30 s"; scontrol show node; return 1; }
    sleep 0.2
  done
}

start() {
  need_packages
  if ! [[ $port =~ ^[1-9][0-9]{3,4}$ ]] || ((port < 1024 || port > 65534)); then
    fail "PORT must be between 1024 and 65534, not '$port'"
  fi
  [[ $folder != *[[:space:]]* ]] || fail "FOLDER must be free of white space: '$folder'"
  # The socket in it must fit the 107 bytes of sun_path.
  ((${#folder} <= 80)) || fail "FOLDER is longer than 80 characters: $folder"
  [[ $cpus =~ ^[1-9][0-9]{0,3}$ ]] || fail "SLURM_CPUS must be a number from 1 on, not '$cpus'"
  clear_folder
  local taken
  for taken in "$port" "$((port + 1))"; do
    if listening "$taken"; then fail "port $taken on 127.0.0.1 is in use"; fi
  done
  mkdir -p "$folder"/{state,spool}
  : > "$folder/$stamp"
  # Not inside a condition, where bash would switch `set -e` off.
  set +e
  (set -ex; bring_up) > "$folder/start.log" 2>&1 < /dev/null
  local outcome=$?
  set -e
  if ((outcome != 0)); then
    tail -n 15 "$folder/start.log" "$folder"/{munged,slurmctld,slurmd}.log >&2 2> /dev/null || true
    kill_processes
    fail "Slurm did not come up (status $outcome); its logs are in $folder"
  fi
  printf '%s\n' "SLURM_CONF=$folder/slurm.conf"
}

[[ $# -ge 2 ]] || usage
folder=$(realpath -m -- "$2")
port=${3:-17817}
cpus=${SLURM_CPUS:-$(nproc)}
host=$(hostname -s)
case "$1:$#" in
  start:2 | start:3) start ;;
  stop:2) clear_folder ;;
  *) usage ;;
esac
