#!/bin/bash
# Give a container an eth0 on a bridge which is its POP's router; does nothing where that is done.
#
#   wire.sh CONTAINER BRIDGE ADDRESS GATEWAY ADDRESS6 GATEWAY6            (/24 and /64)
set -euo pipefail
container=$1 bridge=$2 address=$3 gateway=$4 address6=$5 gateway6=$6

if ! ip link show "$bridge" > /dev/null 2>&1; then
  ip link add "$bridge" type bridge
  ip address add "$gateway/24" dev "$bridge"
  ip address add "$gateway6/64" dev "$bridge" nodad
  ip link set "$bridge" up
fi

pid=$(podman inspect --format '{{.State.Pid}}' "$container")
inside() { nsenter --target "$pid" --net "$@"; }
if ! inside ip link show eth0 > /dev/null 2>&1; then
  ip link add "v-$container" type veth peer name eth0 netns "$pid"
  ip link set "v-$container" master "$bridge" up
  inside ip address add "$address/24" dev eth0
  inside ip address add "$address6/64" dev eth0 nodad
  inside ip link set eth0 up
  inside ip route add default via "$gateway"
  inside ip -6 route add default via "$gateway6"
fi
