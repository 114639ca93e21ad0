#!/usr/bin/env bash
# Installs what this project needs and is not there yet, through apt (Debian, Ubuntu), and says what it does.
#
#   setup.sh build    compiler, libraries, gnuplot: for `make all` and `make figures`
#   setup.sh check    that, and what only the tests need: clang with its fuzzer runtime, a real S3 server, a browser, sqlite3
#   setup.sh cluster  what build needs, Slurm and GNU parallel: for `make cluster`
#   setup.sh paper    what build needs, and LaTeX: for `make paper`
#   setup.sh list     only prints the packages
#
# On another system it installs nothing, names what is needed and stops. Exit 0: all there; 1: something is missing.
set -euo pipefail

build_packages=(gcc make pkg-config libc6-dev libcurl4-openssl-dev libsqlite3-dev libgsl-dev libcjson-dev
                libcunit1-dev libexpat1-dev libssl-dev gnuplot-nox ca-certificates)
check_packages=(clang libclang-rt-dev curl openssl radosgw ceph-mon ceph-osd chromium sqlite3)
cluster_packages=(slurmctld slurmd slurm-client munge parallel procps)
paper_packages=(texlive-latex-base texlive-latex-recommended)

case "${1:-}" in
  build) wanted=("${build_packages[@]}") ;;
  check) wanted=("${build_packages[@]}" "${check_packages[@]}") ;;
  cluster) wanted=("${build_packages[@]}" "${cluster_packages[@]}") ;;
  paper) wanted=("${build_packages[@]}" "${paper_packages[@]}") ;;
  list)  printf '%s\n' "${build_packages[@]}" "${check_packages[@]}" "${cluster_packages[@]}" "${paper_packages[@]}"; exit 0 ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this is not a Debian-like system. Please install by hand what these Debian packages hold, then run 'make all':" >&2
  printf '  %s\n' "${wanted[@]}" >&2
  # Nothing to do when a build would work already.
  if pkg-config --exists libcurl sqlite3 gsl libcjson expat libcrypto 2>/dev/null && command -v gnuplot >/dev/null; then
    echo "setup: the libraries are there; going on." >&2
    exit 0
  fi
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "setup: everything is installed."
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: not root and no sudo. Please run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install_missing() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1
}
# The package lists may be absent or old on a fresh machine: read them anew first.
if ! "${as_root[@]}" apt-get update >"$log" 2>&1; then
  echo "setup: 'apt-get update' failed; going on with the lists that are there. Its last lines:" >&2
  tail -n 5 "$log" >&2
fi
if ! install_missing; then
  echo "setup: apt-get could not install ${missing[*]}. Its last lines:" >&2
  tail -n 15 "$log" >&2
  exit 1
fi
echo "setup: done."
