#!/usr/bin/env bash
# system-packages.sh PACKAGE...: install Debian packages that are missing, as root, and say so first.
# What comes with a service is installed without starting it: the suites start their own.
set -euo pipefail

if [ "$(id -u)" -ne 0 ]; then
  echo "not root: the suites that need network namespaces and systemd hosts are skipped"
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "not Debian: install by your own means what the system suites need: $*"
  exit 0
fi

missing=()
for package in "$@"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0
echo "installing Debian packages that are needed here: ${missing[*]}"

# invoke-rc.d and deb-systemd-invoke(1p) ask this program before they start anything; 101 is "forbidden".
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
