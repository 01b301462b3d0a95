#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# host.sh WHAT...: installs what the demo and the tests need and this machine
# lacks, by apt, and nothing else. WHAT is any of
#   engine   dockerd, containerd and runc, each only where there is none
#   images   busybox-static, debootstrap: material for container images
#   python   python3 with venv and pip: the pinned C toolchain and client wheels
#   seccomp  what runc is built with
#   podman   podman and crun
# No service is started and no file in /etc is edited by us. A machine that has
# everything is left alone, without the network.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

missing=
have() { command -v "$1" >/dev/null 2>&1; }
need() { have "$1" || missing="$missing $2"; }
# Not by command: the package also carries files that we use.
need_package() {
	[ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ] || missing="$missing $1"
}

die() { echo "set-up: $*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || die "Linux is needed"
for what in "$@"; do
	case $what in
	engine)
		# docker.io replaces a docker-ce that is there, so it comes only where no engine is.
		if ! have dockerd; then missing="$missing docker.io"; fi
		if have dockerd && ! have docker; then die "there is a dockerd but no docker command: install your engine's own CLI package"; fi
		need containerd containerd
		need runc runc
		;;
	seccomp)
		need pkg-config pkg-config
		need_package libseccomp-dev
		;;
	podman)
		need podman podman
		need crun crun
		;;
	images) need_package busybox-static; need debootstrap debootstrap ;;
	python)
		need python3 python3
		python3 -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3-venv"
		;;
	*) die "do not know \"$what\"" ;;
	esac
done
[ -n "$missing" ] || exit 0

have apt-get || die "missing:$missing; this script knows only apt, install them by your own package manager"
[ "$(id -u)" = 0 ] || die "missing:$missing; run as root, or install them first"
echo "set-up: installing$missing"

# Debian's packages start their services. A policy that says no keeps them down
# while we install; what was there before is put back, also after an interrupt.
policy=/usr/sbin/policy-rc.d
mark='gpushare test set-up'
saved=$policy.before-gpushare
restore() {
	if grep -qs "$mark" "$policy"; then
		rm -f "$policy"
		if [ -e "$saved" ]; then mv "$saved" "$policy"; fi
	fi
}
restore # what an interrupted run may have left
trap restore EXIT
trap 'exit 130' INT TERM
if [ -e "$policy" ]; then mv "$policy" "$saved"; fi
printf '#!/bin/sh\n# %s\nexit 101\n' "$mark" >"$policy"
chmod 0755 "$policy"

log=$(mktemp)
install() {
	# shellcheck disable=SC2086 # a list of package names
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$log" 2>&1
}
if ! install; then
	apt-get update >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "apt-get update failed"; }
	install || { tail -n 20 "$log" >&2; die "apt-get install$missing failed"; }
fi
rm -f "$log"
