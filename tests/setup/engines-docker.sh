#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# engines-docker.sh [WHAT...]: builds a current Docker engine for the tests out of
# its modules. WHAT is any of, or without an argument all of
#   dockerd      dockerd and docker-proxy
#   runc         its low-level runtime: Debian's is too old for it
#   containerd   containerd, its shim and ctr
#   cli          docker; Debian's is too old to speak to it
# The first build takes about ten minutes of two cores. Nothing is installed but
# what runc needs to be compiled, by apt.
#
# Prints the directory to put before PATH: .cache/engines/docker-VERSION/bin. What
# is there already is not built again.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# Versions, and the hashes of their sources; the hashes of what they are built on
# are in the go.sum that comes with each.
docker=v2.0.0-beta.24 docker_sum=h1:sWv7EckkDJhpraR9yUjkw1XeVf39+MWd58E22PYloNA=
runc=v1.5.3 runc_sum=h1:y3GUIW7J0Gxd+tCFfWR6L1YDnhHiNR1BGRx1J50+VnA=
containerd=v2.4.2 containerd_sum=h1:p6Qg+xbEz8lvwdhHDx0U469xENvp4LgGBx+E7djXkGw=
cli=v29.9.3+incompatible cli_sum=h1:SBaMp7ecohadEHMDrUJg22t9I3awqsAVhnJ7GOcWpfE=

root=$(cd "$(dirname "$0")/../.." && pwd)
engines=$root/.cache/engines
bin=$engines/docker-${docker#v}/bin

die() { echo "set-up: $*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || die "Linux is needed"
[ $# -gt 0 ] || set -- dockerd runc containerd cli
mkdir -p "$bin"
# Two runs at once would build everything twice.
exec 9>"$bin/.lock"
flock 9
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# source MODULE VERSION SUM: the directory of the module's source, checked.
source() {
	got=$(cd / && go mod download -json "$1@$2") || die "go mod download $1@$2: $got"
	[ "$(echo "$got" | sed -n 's/^\t"Sum": "\(.*\)",\{0,1\}$/\1/p')" = "$3" ] || die "$1@$2 has another hash than $3: $got"
	echo "$got" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p'
}

# build DIRECTORY NAME PACKAGE FLAGS...: a program whose file is either whole or absent.
build() {
	(
		dir=$1 name=$2 package=$3
		shift 3
		cd "$dir"
		GOFLAGS=-mod=readonly GOWORK=off go build -trimpath -o "$bin/.$name" "$@" "$package" 9>&-
	) >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; die "build of $2 failed"; }
	mv "$bin/.$2" "$bin/$2"
}

absent() {
	[ ! -x "$bin/$1" ] || return 1
	echo "set-up: building $1, once; this takes some minutes" >&2
}

for what in "$@"; do
	case $what in
	dockerd)
		for program in dockerd docker-proxy; do
			if absent $program; then
				dir=$(source github.com/moby/moby/v2 "$docker" "$docker_sum")
				export CGO_ENABLED=0
				build "$dir" $program ./cmd/$program
			fi
		done
		;;
	runc)
		if absent runc; then
			"$root/tests/setup/host.sh" seccomp
			dir=$(source github.com/opencontainers/runc "$runc" "$runc_sum")
			export CGO_ENABLED=1
			# Docker refuses a runc without seccomp.
			build "$dir" runc . -tags seccomp -ldflags "-X main.version=${runc#v}"
		fi
		;;
	containerd)
		for program in containerd containerd-shim-runc-v2 ctr; do
			# The tests of containerd build the same one; a link to theirs is enough.
			theirs=containerd-${containerd#v}/bin/$program
			if [ ! -x "$bin/$program" ] && [ -x "$engines/$theirs" ]; then
				ln -sf "../../$theirs" "$bin/$program"
			elif absent $program; then
				dir=$(source github.com/containerd/containerd/v2 "$containerd" "$containerd_sum")
				export CGO_ENABLED=0
				tags=no_btrfs,no_devmapper,no_zfs
				[ $program != containerd-shim-runc-v2 ] || tags=no_grpc
				build "$dir" $program ./cmd/$program -tags "$tags"
			fi
		done
		;;
	cli)
		if absent docker; then
			dir=$(source github.com/docker/cli "$cli" "$cli_sum")
			# It names what it is built on in files that go does not look for.
			cp -r "$dir" "$work/cli"
			chmod -R u+w "$work/cli"
			rm -rf "$work/cli/vendor"
			mv "$work/cli/vendor.mod" "$work/cli/go.mod"
			mv "$work/cli/vendor.sum" "$work/cli/go.sum"
			version=${cli#v}
			export CGO_ENABLED=0
			build "$work/cli" docker ./cmd/docker -ldflags "-X github.com/docker/cli/cli/version.Version=${version%+*}"
		fi
		;;
	*) die "do not know \"$what\"" ;;
	esac
done
echo "$bin"
