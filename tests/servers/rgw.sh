#!/usr/bin/env bash
# Runs a real S3 server for the tests: one Ceph monitor, one OSD that keeps objects in memory, and the RADOS gateway
# (RGW). Everything listens on 127.0.0.1 only and lives in one folder; nothing survives `stop`.
#
#   rgw.sh start FOLDER PORT   serve S3 on PORT by http and PORT+2 by https (the monitor takes PORT+1); prints what a
#                              client needs as name=value lines. https has a certificate of its own making, see ca_file
#   rgw.sh stop FOLDER         kill the three daemons and delete FOLDER
#
# FOLDER must not exist yet, or have been made by this script (a leftover of a killed run is cleared first).
# Exit status 0: done. 1: the server could not be started, the reason is on stderr. 2: wrong usage. 3: packages missing.
#
#   RGW_STORE     memstore (default) or bluestore (a sparse file in FOLDER)
#   RGW_CAPACITY  bytes the OSD pretends to have, default 4 GiB; memstore needs a bit over twice what is stored
set -euo pipefail
unset CEPH_ARGS CEPH_CONF CEPH_KEYRING

access=lakestream
secret=lakestreamsecret
bucket=lakestream
stamp=made-by-rgw.sh

# shellcheck source=tests/servers/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

need_packages() {
  need_programs check "radosgw ceph-mon ceph-osd curl openssl" \
    ceph ceph-mon ceph-osd monmaptool radosgw radosgw-admin curl openssl
}

# Process ids of this folder's daemons. They are told from others by their configuration file, which stands in their
# command line; files with process ids are of no use after a crash.
processes() {
  local entry
  for entry in /proc/[0-9]*; do
    [[ -r $entry/cmdline ]] || continue
    case $(tr '\0' '\n' 2> /dev/null < "$entry/cmdline" | head -n 1) in
      *ceph-mon | *ceph-osd | *radosgw) ;;
      *) continue ;;
    esac
    if tr '\0' '\n' 2> /dev/null < "$entry/cmdline" | grep -qxF -- "$folder/ceph.conf"; then echo "${entry#/proc/}"; fi
  done
}

# The reasons behind the unusual settings:
#   no cephx        keys between daemons would only cost start-up time; without them the wire mode must be crc
#   paxos           each new pool is a proposal, batched for a second by default: start-up would take ten times as long
#   pools           one copy on one OSD, few placement groups
#   mon data avail  a nearly full disk must not end the monitor
#   tcp_nodelay     otherwise answers wait some 40 ms for a delayed acknowledgement
#   dns name        lets a client say bucket.localhost
#   rgw enable/...  no background work that would disturb a measurement
configuration() {
  local tls="ssl_endpoint=127.0.0.1:$((port + 2)) ssl_certificate=$folder/tls.pem ssl_private_key=$folder/tls.key"
  cat << CONF
[global]
fsid = $cluster
mon host = [v2:127.0.0.1:$((port + 1))]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
$(printf 'ms %s mode = crc\n' cluster service client 'mon cluster' 'mon service' 'mon client')
log file = $folder/\$name.log
run dir = $folder
crash dir = $folder
admin socket = $folder/\$name.asok
pid file = $folder/\$name.pid
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000

[mon]
mon data = $folder/mon
mon cluster log file = $folder/cluster.log
mon data avail warn = 0
mon data avail crit = 0
paxos propose interval = 0.05
paxos min wait = 0.01

[osd]
osd data = $folder/osd
osd objectstore = ${RGW_STORE:-memstore}
memstore device bytes = $capacity
bluestore block size = $capacity
osd memory target = 939524096
osd class load list = *
osd class default list = *
osd numa auto affinity = false

[client.rgw]
rgw data = $folder/rgw
rgw frontends = beast endpoint=127.0.0.1:$port tcp_nodelay=1 $tls
rgw dns name = localhost
rgw thread pool size = 64
$(printf 'rgw enable %s = false\n' 'gc threads' 'lc threads' 'quota threads' 'usage log' 'ops log')
rgw dynamic resharding = false
rgw run sync thread = false
CONF
}

# A signed request. RGW wants x-amz-content-sha256 among the signed headers; curl before 8 does not add it.
request() {
  curl --disable --silent --show-error --fail --noproxy '*' --max-time 30 --output /dev/null \
    --user "$access:$secret" --aws-sigv4 aws:amz:us-east-1:s3 --header 'x-amz-content-sha256: UNSIGNED-PAYLOAD' "$@"
}

bring_up() {
  local ceph=(-c "$folder/ceph.conf") disk
  disk=$(< /proc/sys/kernel/random/uuid)
  configuration > "$folder/ceph.conf"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=lakestream-test \
    -addext 'subjectAltName = IP:127.0.0.1, DNS:localhost, DNS:*.localhost' \
    -keyout "$folder/tls.key" -out "$folder/tls.pem"
  monmaptool --create --fsid "$cluster" --addv m "[v2:127.0.0.1:$((port + 1))]" "$folder/monmap"
  ceph-mon "${ceph[@]}" -i m --mkfs --monmap "$folder/monmap"
  ceph-mon "${ceph[@]}" -i m
  timeout 30 ceph "${ceph[@]}" osd new "$disk"
  timeout 60 ceph-osd "${ceph[@]}" -i 0 --mkfs --osd-uuid "$disk"
  timeout 60 ceph-osd "${ceph[@]}" -i 0
  timeout 90 radosgw "${ceph[@]}" -n client.rgw
  timeout 60 radosgw-admin "${ceph[@]}" -n client.rgw user create --uid "$access" --display-name "$access" \
    --access-key "$access" --secret-key "$secret"
  local waited=0
  until listening "$port"; do
    ((waited++ < 300)) || { echo "nothing listens on port $port after 30 s"; return 1; }
    sleep 0.1
  done
  # The first bucket and the first object create the last pools; no test should be the one to wait for them.
  request --request PUT "http://127.0.0.1:$port/$bucket"
  request --request PUT --data-binary warm "http://127.0.0.1:$port/$bucket/warm-up"
  request --request DELETE "http://127.0.0.1:$port/$bucket/warm-up"
}

start() {
  need_packages
  if ! [[ $port =~ ^[1-9][0-9]{3,4}$ ]] || ((port < 1024 || port > 65533)); then
    fail "PORT must be between 1024 and 65533, not '$port'"
  fi
  [[ $folder != *[[:space:]]* ]] || fail "FOLDER must be free of white space: '$folder'"
  # The longest Unix socket in it, FOLDER/client.rgw.asok, must fit the 107 bytes of sun_path.
  ((${#folder} <= 90)) || fail "FOLDER is longer than 90 characters: $folder"
  [[ ${RGW_STORE:-memstore} =~ ^(memstore|bluestore)$ ]] || fail "RGW_STORE must be memstore or bluestore"
  [[ $capacity =~ ^[1-9][0-9]{8,14}$ ]] || fail "RGW_CAPACITY must be at least 100000000 (bytes), not '$capacity'"
  clear_folder
  local taken
  for taken in "$port" "$((port + 1))" "$((port + 2))"; do
    if listening "$taken"; then fail "port $taken on 127.0.0.1 is in use"; fi
  done
  mkdir -p "$folder"/{mon,osd,rgw}
  : > "$folder/$stamp"
  cluster=$(< /proc/sys/kernel/random/uuid)
  # Not inside a condition, where bash would switch `set -e` off.
  set +e
  (set -ex; bring_up) > "$folder/start.log" 2>&1 < /dev/null
  local outcome=$?
  set -e
  if ((outcome != 0)); then
    tail -n 12 "$folder/start.log" "$folder"/{mon.m,osd.0,client.rgw}.log >&2 2> /dev/null || true
    kill_processes
    fail "the server did not come up (status $outcome); its logs are in $folder"
  fi
  printf '%s\n' "endpoint=http://127.0.0.1:$port" "tls_endpoint=https://127.0.0.1:$((port + 2))" \
    "ca_file=$folder/tls.pem" "region=us-east-1" "access_key=$access" "secret_key=$secret" "bucket=$bucket"
}

[[ $# -ge 2 ]] || usage
folder=$(realpath -m -- "$2")
port=${3:-}
capacity=${RGW_CAPACITY:-$((4 << 30))}
case "$1:$#" in
  start:3) start ;;
  stop:2) clear_folder ;;
  *) usage ;;
esac
