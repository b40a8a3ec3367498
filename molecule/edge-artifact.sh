#!/bin/bash
# Build build/edge/tidegate-edge.tar.gz, the edge software for a Debian 12 host: our wheel and its locked
# dependencies for the system's python3, with launchers that find them wherever the archive is unpacked. Beside it its
# SHA-256, which the role edge_software compares the host's copy with.
#
#   molecule/edge-artifact.sh            needs uv: what $UV names, the one on PATH, or make's
set -euo pipefail
umask 022

python=3.11 # Debian 12's
repository=$(cd "$(dirname "$0")/.." && pwd)
uv=${UV:-$(command -v uv || echo "$repository/build/bin/uv")}
out=$repository/build/edge
mkdir -p "$out"
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/tidegate-edge
mkdir -p "$tree/bin"

cd "$repository"
"$uv" export --quiet --frozen --no-dev --package tidegate-edge --no-emit-workspace -o "$work/requirements.txt"
"$uv" build --quiet --wheel --package tidegate-edge --out-dir "$work/wheel"
"$uv" pip install --quiet --target "$tree/lib" --python-version "$python" --only-binary :all: \
  -r "$work/requirements.txt"
"$uv" pip install --quiet --target "$tree/lib" --python-version "$python" --no-deps "$work"/wheel/*.whl
rm -rf "$tree/lib/bin" "$tree/lib/.lock"
# These name folders of this machine, and the lists of files have their sums.
rm -f "$tree"/lib/*.dist-info/{direct_url,uv_cache}.json
sed -i '/\/\(direct_url\|uv_cache\)\.json,/d' "$tree"/lib/*.dist-info/RECORD

for program in agent collector; do
  cat > "$tree/bin/tidegate-$program" <<PYTHON
#!/usr/bin/python3
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from tidegate_edge.$program import main

sys.exit(main())
PYTHON
  chmod 755 "$tree/bin/tidegate-$program"
done

# The same software gives the same archive, whoever builds it and when: only then a reviewed sum says something.
tar --owner=0 --group=0 --numeric-owner --mode=go-w --sort=name --mtime=@0 -C "$work" -c tidegate-edge |
  gzip -1 --no-name > "$work/tidegate-edge.tar.gz"
(cd "$work" && sha256sum tidegate-edge.tar.gz > tidegate-edge.tar.gz.sha256)
mv "$work"/tidegate-edge.tar.gz{,.sha256} "$out"
