#!/bin/sh
# Put the jars of an Apache Kafka broker into a directory: get-kafka.sh DEST
#
# Takes what Maven is configured to fetch from. Leaves a DEST that is there already; DEST is whole or untouched.
set -eu

if [ $# -ne 1 ]; then
	echo "usage: $0 DEST" >&2
	exit 2
fi
destination=$1
[ ! -d "$destination" ] || exit 0

if ! command -v mvn >/dev/null; then
	echo "kafka: no Maven on PATH; install maven and try again" >&2
	exit 3
fi
mkdir -p "$(dirname "$destination")"
work=$(realpath "$(mktemp -d "$(dirname "$destination")/.kafka.XXXXXX")")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$work"

echo "kafka: fetching the broker's jars, 43 MB" >&2
mvn --quiet --batch-mode --file "$(dirname "$0")/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work" >&2 ||
	{ echo "kafka: Maven could not fetch the broker" >&2; exit 3; }
mv -T "$work" "$destination" 2>/dev/null || [ -d "$destination" ] # another run may have been first
