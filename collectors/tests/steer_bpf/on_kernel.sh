#!/bin/sh
# Runs the tests of this directory on another kernel of x86-64, in a virtual machine: on_kernel.sh LINUX-IMAGE.deb [PYTEST OPTIONS]
#
# The machine's files are this one's own: Python, the tests with the objects that `make real` built, nginx and iproute2.
# Needs qemu-system-x86 and cpio. QEMU names another program.
set -eu
package=$1
shift
options=$(for each in "$@"; do printf "'%s' " "$each"; done)
here=$(cd "$(dirname "$0")" && pwd)
collectors=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

dpkg-deb -x "$package" "$work/kernel"
root=$work/root
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run" "$root/etc" "$root/var/log/nginx" \
    "$root/var/lib/nginx" "$root/site" "$root/modules"
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
find "$work/kernel" \( -name veth.ko -o -name tcp_bbr.ko -o -name inet_diag.ko -o -name tcp_diag.ko \) -exec cp {} "$root/modules" \;

# The modules that the tests import, with what these need of the system's libraries.
cat >"$work/imported.py" <<'PYTHON'
import sys, pytest
from pathlib import Path
here = sys.argv[1]
if pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", here]):
    sys.exit("the tests can't be collected")
for file in {getattr(module, "__file__", None) for module in list(sys.modules.values())} - {None}:
    parts = Path(file).parts
    if "site-packages" in parts:
        at = parts.index("site-packages") + 2
        print(Path(*parts[:at]), file=sys.stderr)
PYTHON
(cd "$collectors/.." && python "$work/imported.py" "$here" 2>"$work/imported" >/dev/null)
sort -u "$work/imported" | grep -v '/tidegate' | while read -r each; do
    cp -rL "$each" "$root/site"
done
mkdir -p "$root/repository/collectors/tests"
cp -r "$here" "$root/repository/collectors/tests"
cp -rL "$collectors/tidegate_edge" "$root/repository/collectors"

standard=$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
python=$(readlink -f "$(command -v python)")
mkdir -p "$root$standard" "$root$(dirname "$python")" "$root/bin"
(cd "$standard" && find . \( -name test -o -name __pycache__ -o -name site-packages -o -name 'config-*' \) -prune -o -type f -print | cpio --quiet -pdm "$root$standard")
programs="$python"
for each in sh ip ss nsenter setpriv mount umount mkdir rm nginx; do
    program=$(command -v "$each")
    cp -L "$program" "$root/bin/$each"
    programs="$programs $program"
done
cp "$python" "$root$python"
library=$(ldconfig -p | sed -n 's/.*libbpf\.so\.1 .*=> //p' | head -1)
# shellcheck disable=SC2086 # a list of paths without spaces
{
    echo "$library"
    ldd $programs "$library" | sed -n 's/.*\(=> \|^[[:space:]]*\)\(\/[^ ]*\) (.*/\2/p'
    find "$root/site" "$root$standard" -name '*.so' -exec ldd {} + | sed -n 's/.*=> \(\/[^ ]*\) (.*/\1/p'
} | sort -u | while read -r each; do
    mkdir -p "$root$(dirname "$each")"
    cp -L "$each" "$root$each"
done

cat >"$root/init" <<INIT
#!/bin/sh
export PATH=/bin PYTHONPATH=/site:/repository/collectors HOME=/tmp PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
$python -c 'import ctypes, os, sys
for module in sys.argv[1:]: ctypes.CDLL(None).syscall(313, os.open(module, os.O_RDONLY), b"", 0)  # finit_module' /modules/*
ip link set lo up
cd /repository
read -r _ _ version _ </proc/version
$python -m pytest -q -p no:cacheprovider --import-mode=importlib -c /dev/null --rootdir . \\
    -o markers=root --color=no --tb=short -ra collectors/tests/steer_bpf $options
echo "exit code \$? on Linux \$version"
echo o >/proc/sysrq-trigger
while :; do read -r _ || :; done
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initrd"

# Emulated: KVM inside a virtual machine fails on some hosts.
${QEMU:-qemu-system-x86_64} -accel tcg,thread=multi -cpu max -m 3072 -smp 2 -nodefaults -no-reboot -display none -serial file:"$work/said" \
    -kernel "$work/kernel"/boot/vmlinuz-* -initrd "$work/initrd" -append "console=ttyS0 quiet panic=-1" || :
cat "$work/said"
grep -q '^exit code 0 on Linux' "$work/said"
