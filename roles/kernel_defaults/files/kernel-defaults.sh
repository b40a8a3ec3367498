#!/bin/sh
# Take this host's TCP back to the settings that it had before Tidegate, whatever ails the agent; also where there is
# neither an agent nor Python. Prints a line for each thing that it changes, and exits with 1 if something of ours stays.
#
#   kernel-defaults.sh [--dry-run] PART...            PART: steering, sysctls, or mark (keep it so, until it is removed)
set -u

usual_pins=/sys/fs/bpf/tidegate
state=/var/lib/tidegate
sysctls=/var/lib/tidegate-sysctls
mark=/etc/tidegate/stopped
protocol=201 # what the agent's routes carry
algorithm=/proc/sys/net/ipv4/tcp_congestion_control

dry_run=
if [ "${1:-}" = --dry-run ]; then
  dry_run=yes
  shift
fi

# Where the agent noted that BPF's objects are, else where they usually are.
pins() {
  noted=$(sed -n 's/^{"pins": \["\(.*\)"\]}$/\1/p' "$state/bpf.json" 2> /dev/null | sed 's/", "/\n/g')
  echo "${noted:-$usual_pins}"
}

routes() { ip -o "-$1" route show proto "$protocol" 2> /dev/null; }

# "before" or "set" of the default algorithm that the agent remembers.
remembered() { sed -n "s/.*\"$1\": *\"\([a-z0-9_-]*\)\".*/\1/p" "$state/default.json" 2> /dev/null; }

default_is_ours() { [ -n "$(remembered set)" ] && [ "$(remembered set)" = "$(cat "$algorithm")" ]; }

held() {
  routes 4 | sed 's/ .*//; s/^/route to /'
  routes 6 | sed 's/ .*//; s/^/route to /'
  pins | while read -r each; do ! [ -e "$each" ] || echo "program in $each"; done
  ! default_is_ours || echo "default algorithm $(remembered set)"
}

# The agent first: it also notes that nothing is to come back at the next boot.
ask_the_agent() {
  command -v tidegate-agent > /dev/null && timeout 30 tidegate-agent flush > /dev/null 2>&1
}

stop_the_agent() {
  systemctl cat tidegate-agent > /dev/null 2>&1 || return 0
  timeout 40 systemctl disable --now tidegate-agent > /dev/null 2>&1 ||
    systemctl kill --signal KILL tidegate-agent > /dev/null 2>&1
  echo "the agent did not do it: its service is stopped and disabled"
}

by_hand() {
  # What a note says is outside of BPF's file system stays, and is told.
  pins | grep '^/sys/fs/bpf/[^/.][^/]*$' | while read -r each; do rm -rf "$each"; done
  # One by one: `ip route flush` stops at the first that uses a nexthop object.
  for family in 4 6; do
    routes "$family" | sed 's/ .*//' | while read -r prefix; do
      ip "-$family" route del "$prefix" proto "$protocol"
    done
  done
  ! default_is_ours || remembered before > "$algorithm"
  # Or the generation would come back with the agent.
  rm -f "$state/default.json" "$state/generations.json"
  [ -n "$(held)" ] || rm -f "$state/bpf.json"
}

steering() {
  before=$(held)
  [ -z "$before" ] || echo "$before" | sed 's/^/removed: /'
  [ -z "$dry_run" ] || return 0
  # What was stopped, and holds nothing, needs no further generation of nothing.
  if [ -z "$before" ] && [ -e "$mark" ]; then return 0; fi
  if ask_the_agent && [ -z "$(held)" ]; then return 0; fi
  if [ -n "$(held)" ] || [ -e "$state/generations.json" ]; then
    stop_the_agent
    by_hand
  fi
  left=$(held)
  [ -z "$left" ] || { echo "still there: $left" >&2; return 1; }
}

# The parameters of a file of memory that still have what we set, each with what stood there before. What somebody
# else has set since is not ours any more.
still_set() {
  sed -n 's/^\([a-zA-Z0-9_.-]*\) = \(.*\)/\1 \2/p' "$1" | while read -r key before; do
    ours=$(sed -n "s/^$key = //p" "$2" 2> /dev/null)
    [ "$ours" != "$before" ] || continue
    [ "$(tr '\t' ' ' < "/proc/sys/$(echo "$key" | tr . /)")" != "$ours" ] || echo "$key $before"
  done
}

sysctls() {
  kept=0
  for memory in "$sysctls"/*.conf; do
    [ -e "$memory" ] || continue
    boot=/etc/sysctl.d/60-tidegate-$(basename "$memory")
    still_set "$memory" "$boot" | while read -r key before; do
      echo "put back: $key = $before"
      [ -n "$dry_run" ] || echo "$before" > "/proc/sys/$(echo "$key" | tr . /)"
    done
    [ -z "$dry_run" ] || continue
    # What was not put back is remembered, for a second run.
    left=$(still_set "$memory" "$boot")
    if [ -z "$left" ]; then
      rm -f "$boot" "$memory"
    else
      echo "still there: $left" >&2
      kept=1
    fi
  done
  [ -n "$dry_run" ] || rmdir "$sysctls" 2> /dev/null || true
  return "$kept"
}

mark() {
  ! [ -e "$mark" ] || return 0
  echo "marked as stopped: $mark"
  [ -z "$dry_run" ] || return 0
  mkdir -p "${mark%/*}" && date -u +%Y-%m-%dT%H:%M:%SZ > "$mark"
}

code=0
for part in "$@"; do
  case $part in
    steering) steering || code=1 ;;
    sysctls) sysctls || code=1 ;;
    mark) mark || code=1 ;;
    *) echo "kernel-defaults.sh: no part is called $part" >&2; exit 2 ;;
  esac
done
exit "$code"
