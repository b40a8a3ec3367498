#!/bin/bash
# Make the image of a test host, unless podman has one of this very recipe: Debian with systemd, ssh, python3 and nginx.
#
#   molecule/image.sh            needs root, podman and debootstrap; two minutes, 300 MB
set -euo pipefail

image=localhost/tidegate-host:bookworm
suite=bookworm
packages=systemd,systemd-sysv,dbus,python3,iproute2,openssh-server,procps,nginx

repository=$(cd "$(dirname "$0")/.." && pwd)
export CONTAINERS_CONF=$repository/molecule/containers.conf
mkdir -p "$repository/build"
exec 9> "$repository/build/image.lock" # two scenarios may begin at once
flock 9
recipe=$(sha256sum < "$0" | cut -c1-16)
present=$(podman image inspect --format '{{index .Labels "tidegate.recipe"}}' "$image" 2>/dev/null || true)
if [ "$present" = "$recipe" ]; then
  echo "molecule: image $image is up to date" >&2
  exit 0
fi

# The mirror that this machine's apt uses already; empty lets debootstrap take its own default.
# shellcheck disable=SC2016 # apt-get expands it
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" 'Origin: Debian' 'Created-By: Packages' |
  head -n 1)

tree=$(mktemp -d "$repository/build/image.XXXXXX")
trap 'rm -rf --one-file-system "$tree"' EXIT
echo "molecule: making image $image (about two minutes)" >&2
debootstrap --variant=minbase --include="$packages" "$suite" "$tree" ${mirror:+"$mirror"} >&2
rm -rf "$tree"/var/cache/apt/archives/*.deb "$tree"/var/lib/apt/lists/*
# Which hosts serve is the scenario's to say; the first boot would enable nginx again, but for a preset.
rm -f "$tree"/etc/systemd/system/multi-user.target.wants/nginx.service
mkdir -p "$tree"/etc/systemd/system-preset
echo 'disable nginx.service' > "$tree"/etc/systemd/system-preset/10-scenario.preset
# The network is wired from outside: whoever waits for systemd-networkd to bring it up waits for two minutes.
ln -s /dev/null "$tree"/etc/systemd/system/systemd-networkd-wait-online.service
# Every container makes an identity of its own at its first boot.
rm -f "$tree"/etc/machine-id
tar -C "$tree" -c . | podman import --change "LABEL tidegate.recipe=$recipe" - "$image" >&2
