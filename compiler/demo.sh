#!/usr/bin/env bash
# demo.sh DIRECTORY: the main job on a simulated fleet, in a copy of the example policy and inventory.
set -euo pipefail
directory=$1

say() { printf '\n\033[1m%s\033[0m\n' "== $*"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$*"; }
run() {
  echo "\$ $*"
  "$@"
}

rm -rf "$directory"
mkdir -p "$directory/dsl/examples"
cp -r inventory "$directory/inventory"
cp dsl/examples/edge.tide dsl/examples/recorded.pb "$directory/dsl/examples/"
cd "$directory"

say "Six hours of a SIMULATED fleet of four POPs (seed 1; no real network was measured)"
run tidegate simulate --inventory inventory --seed 1 --out telemetry
run tidegate ingest telemetry/*.pb

say "The policy is checked"
run tidegate check dsl/examples/edge.tide

say "The plan by POP, and Open Policy Agent's verdict"
run tidegate plan dsl/examples/edge.tide --as-of 2026-11-20T06:01:00Z --out plan.json

say "The plan is applied"
run tidegate apply plan.json

say "One prefix explained"
read -r prefix pop < <(python3 -c '
import json
pops = json.load(open("plan.json"))["pops"]
print(*next((d["prefix"], pop) for pop, body in pops.items() for d in body["decisions"]))')
run tidegate explain "$prefix" --at "$pop"

say "Planned once more: nothing changes"
run tidegate plan dsl/examples/edge.tide --as-of 2026-11-20T06:01:00Z --out again.json

say "What was written in $directory"
find inventory/group_vars -name tidegate.yml | sort | xargs sha256sum
