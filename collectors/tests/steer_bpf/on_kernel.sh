#!/bin/sh
# Runs tests on another kernel of x86-64, in an emulated machine without a disk or a network of its own:
#
#     on_kernel.sh LINUX-IMAGE [PYTEST OPTIONS]
#     on_kernel.sh linux-image-6.1.0-56-cloud-amd64_6.1.192-2_amd64.deb -k 'nginx and not alone'
#
# LINUX-IMAGE: a package of Debian's, as `apt-get download linux-image-6.1.0-56-cloud-amd64` gets it, or a directory in
# which it is unpacked. The machine's files are this one's own: Python with what the tests import, the BPF objects as
# `make real` built them, nginx, iproute2. No KVM is needed, and none is used: allow a quarter of an hour.
#
# TESTS: others than the default ones, by their paths from the repository's root. LIMIT: seconds until the machine is
# ended (3600). QEMU: another program. SAID: a file that keeps what the machine says.
#
# Exit code 0: all passed, 1: some failed or the machine did not end by itself, 2: wrong usage, 3: a program is missing.
set -eu
if [ $# -lt 1 ] || [ ! -e "$1" ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
image=$1
shift
options=$(for each in "$@"; do printf "'%s' " "$each"; done)
repository=$(cd "$(dirname "$0")/../../.." && pwd)
tests=${TESTS:-$(cd "$repository" && echo collectors/tests/steer_bpf/test_*.py collectors/tests/steer_bpf/on_kernel_qdisc.py \
    collectors/tests/test_readers_agree.py collectors/tests/test_reader_of_kernel.py)}
qemu=${QEMU:-qemu-system-x86_64}
guest_programs='sh cat chmod id ip ls mount mkdir nginx nsenter rm setpriv sleep ss sysctl tc umount unshare'
missing=$(for each in "$qemu" cpio dpkg-deb gzip ldd python timeout xz $guest_programs; do
    command -v "$each" >/dev/null || printf '%s ' "$each"
done)
if [ -n "$missing" ]; then
    echo "missing: $missing
Debian: apt-get install qemu-system-x86 cpio dpkg xz-utils iproute2 nginx-light util-linux procps
python: that of the repository's environment, . .venv/bin/activate" >&2
    exit 3
fi
for object in sockets/sockets.bpf.o steer/bpf/steer.bpf.o steer/bpf/steered.bpf.o; do
    [ -e "$repository/collectors/tidegate_edge/$object" ] || { echo "no $object: make real" >&2; exit 3; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
root=$work/root
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run" "$root/etc" "$root/bin" "$root/var/log/nginx" \
    "$root/var/lib/nginx" "$root/site" "$root/modules" "$root/repository"
echo 'root:x:0:0:root:/tmp:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
mkdir -p "$root/usr/lib/locale"
cp -r /usr/lib/locale/C.utf8 "$root/usr/lib/locale" # without which Ansible does not start

# --- the kernel and its modules ---------------------------------------------------------------------------
if [ -d "$image" ]; then kernel=$image; else dpkg-deb -x "$image" "$work/kernel" && kernel=$work/kernel; fi
for module in inet_diag sch_fq tcp_bbr tcp_diag tun veth; do
    find "$kernel" -name "$module.ko*" -exec cp {} "$root/modules" \;
done
find "$root/modules" -name '*.xz' -exec xz -d {} +

# --- the tests, and the Python modules that they import -----------------------------------------------------
cat >"$work/imported.py" <<'PYTHON'
import sys
from pathlib import Path

import pyroute2.netns  # the readers import it when they open
import pytest

if pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", "--import-mode=importlib", *sys.argv[2:]]):
    sys.exit("the tests can't be collected")
found = set()
for module in list(sys.modules.values()):
    parts = Path(getattr(module, "__file__", None) or "").parts
    if "site-packages" in parts:
        found.add(str(Path(*parts[: parts.index("site-packages") + 2])))
Path(sys.argv[1]).write_text("".join(f"{each}\n" for each in sorted(found)))
PYTHON
# shellcheck disable=SC2086 # a list of paths without spaces
(cd "$repository" && python "$work/imported.py" "$work/imported" $tests) >"$work/collected" || { cat "$work/collected" >&2; exit 1; }
while read -r each; do
    cp -rLp "$each" "$root/site" # -p: what is compiled stays valid
    if [ -d "$each.libs" ]; then cp -r "$each.libs" "$root/site"; fi # libraries that a wheel brings
done <"$work/imported"
packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp -r "$packages"/*.dist-info "$root/site" # some ask for the versions of others
(
    cd "$repository"
    # shellcheck disable=SC2086 # the same
    cp -r --parents $tests collectors/tests/conftest.py collectors/tests/steer_bpf/conftest.py collectors/bpf plugins roles "$root/repository"
    cp -rLp --parents collectors/tidegate_edge "$root/repository"
)

# --- Python, the programs, and the libraries of all -----------------------------------------------------------
standard=$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
python=$(readlink -f "$(command -v python)")
mkdir -p "$root$standard" "$root$(dirname "$python")"
(cd "$standard" && find . \( -name test -o -name tests -o -name idlelib -o -name site-packages -o -name 'config-*' \) -prune -o \
    -type f -print | cpio --quiet -pdm "$root$standard")
cp "$python" "$root$python"
for each in agent collector; do
    printf '#!%s\nfrom tidegate_edge.%s import main\nmain()\n' "$python" "$each" >"$root$(dirname "$python")/tidegate-$each"
    chmod +x "$root$(dirname "$python")/tidegate-$each"
done
# Emulated, what takes longest is to compile modules anew in each process: times are kept, so that few are compiled here.
python -m compileall -q -s "$root" "$root$standard" "$root/site" "$root/repository/collectors/tidegate_edge" \
    >"$work/compiled" 2>&1 || :
programs=$python
for each in $guest_programs; do
    program=$(command -v "$each")
    cp -L "$program" "$root/bin/$each"
    programs="$programs $program"
done
library=$(ldconfig -p | sed -n 's/.*libbpf\.so\.1 .*=> //p' | head -1)
# shellcheck disable=SC2086 # the same
{
    echo "$library"
    ldd $programs "$library" | sed -n 's/.*\(=> \|^[[:space:]]*\)\(\/[^ ]*\) (.*/\2/p'
    find "$root/site" "$root$standard" -name '*.so' -exec ldd {} + | sed -n 's/.*=> \(\/[^ ]*\) (.*/\1/p' | grep -v "^$root"
} | sort -u | while read -r each; do
    mkdir -p "$root$(dirname "$each")"
    cp -L "$each" "$root$each"
done

# --- the machine ------------------------------------------------------------------------------------------------
cat >"$root/init" <<INIT
#!/bin/sh
export PATH=/bin:$(dirname "$python") PYTHONPATH=/site:/repository/collectors HOME=/tmp PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 EMULATED=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
$python -c 'import ctypes, os, sys
for module in sys.argv[1:]: ctypes.CDLL(None).syscall(313, os.open(module, os.O_RDONLY), b"", 0)  # finit_module' /modules/*
ip link set lo up
ulimit -l unlimited # as the agent's unit has it
cd /repository
read -r _ _ version _ </proc/version
$python -m pytest -q -p no:cacheprovider --import-mode=importlib -c /dev/null --rootdir . \\
    -o markers=root --color=no --tb=short -ra --durations=5 $tests $options
echo "exit code \$? on Linux \$version"
echo o >/proc/sysrq-trigger
while :; do sleep 1; done
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initrd"
rm -rf "$root"

# Emulated: KVM inside a virtual machine fails on some hosts.
timeout "${LIMIT:-3600}" "$qemu" -accel tcg,thread=multi -cpu max -m 3072 -smp 2 -nodefaults -no-reboot -display none \
    -serial stdio -kernel "$kernel"/boot/vmlinuz-* -initrd "$work/initrd" -append "console=ttyS0 quiet panic=-1" </dev/null |
    tee "${SAID:-$work/said}"
grep -q '^exit code 0 on Linux' "${SAID:-$work/said}"
