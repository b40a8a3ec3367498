#!/usr/bin/env bash
# get-uv.sh FILE VERSION PYTHON: make FILE the uv that sets the Python environment up: the machine's own, else one
# installed beside FILE. Debian's python3 can do that only with python3-venv, which is installed as root where missing.
set -euo pipefail
file=$1 version=$2 python=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$(dirname "$file")"

if own=$(command -v uv) && [ "$(realpath "$own")" != "$(realpath -m "$file")" ]; then
  ln -sf "$own" "$file"
  exit 0
fi

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "Python 3.11 or later is needed; name one: make PYTHON=python3.12" >&2
  exit 3
fi
if ! "$python" -c 'from ensurepip import version' 2>/dev/null; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "$python cannot make an environment: install its venv module (Debian: python3-venv), or uv" >&2
    exit 3
  fi
  "$here/system-packages.sh" python3-venv
fi
echo "setting up uv $version"
place=$(dirname "$(dirname "$(realpath -m "$file")")")/uv
"$python" -m venv --clear "$place"
"$place/bin/pip" install --quiet "uv==$version"
ln -sf "$place/bin/uv" "$file"
