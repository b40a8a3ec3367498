#!/bin/sh
# Make `tidegate.edge` mean this checkout: ansible.cfg looks for collections in build/collections alone.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
namespace=$root/build/collections/ansible_collections/tidegate
mkdir -p "$namespace"
# Left alone where it stands already: another play may be reading through it.
[ "$(readlink "$namespace/edge" || true)" = "$root" ] || ln -sfn "$root" "$namespace/edge"
