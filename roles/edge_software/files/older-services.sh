#!/bin/sh
# Names the services that run programs of the edge software and began before FOLDER took its place: they run what is no
# longer there. `restart` restarts them, too.
set -eu

folder=$1
restart=${2-}

# Check mode has unpacked nothing.
test -e "$folder" || exit 0
since=$(stat --format %Z "$folder")
systemctl list-units --plain --no-legend --state active,activating,reloading 'tidegate-*.service' | {
    failed=0
    while read -r unit _; do
        case $(systemctl show --property ExecStart --value "$unit") in
        *path=/usr/bin/tidegate-*) ;;
        *) continue ;;
        esac
        began=$(systemctl show --property ExecMainStartTimestamp --timestamp unix --value "$unit")
        if [ "${began#@}" -lt "$since" ]; then
            echo "$unit"
            test -z "$restart" || systemctl restart "$unit" || failed=1
        fi
    done
    exit "$failed"
}
