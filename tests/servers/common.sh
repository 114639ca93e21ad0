# What the scripts here that run a real server have in common; to be sourced. A server lives in one folder, marked by a file of its
# script's, and is killed and deleted with it: nothing else is ever touched. The sourcing script gives
#   $folder, $stamp   the folder, and the name of the mark in it
#   processes         a function that prints the process ids of all that runs from that folder
script=$(basename -- "$0")

fail() { printf '%s: %s\n' "$script" "$*" >&2; exit "${status:-1}"; }
usage() { awk 'NR > 1 && /^#/ { sub(/^# ?/, ""); print; next } NR > 1 { exit }' "$0" >&2; exit 2; }

# need_programs SETUP "PACKAGES" PROGRAM...: exit 3 with the way to install them unless all are there.
need_programs() {
  local setup=$1 packages=$2 program absent=()
  shift 2
  for program; do
    type -P "$program" > /dev/null || absent+=("$program")
  done
  ((${#absent[@]} == 0)) && return
  status=3 fail "not installed: ${absent[*]}. Run './setup.sh $setup', or as root:" \
    "apt-get install --no-install-recommends $packages"
}

# SIGKILL: there is nothing to save, and a polite end makes each wait for the others.
kill_processes() {
  local left tries=0
  while left=$(processes) && [[ -n $left ]]; do
    ((tries++ < 100)) || fail "these processes do not end: $left"
    # shellcheck disable=SC2086
    kill -9 $left 2> /dev/null || true
    sleep 0.05
  done
}

clear_folder() {
  [[ -e $folder ]] || return 0
  [[ -f $folder/$stamp ]] || fail "$folder is not a folder of this script's; not touched"
  kill_processes
  rm -rf -- "$folder"
}

listening() { (: <> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }
