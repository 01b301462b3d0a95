#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# engines.sh NAME...        builds container engines that the tests need beside
#                           apt's, into .cache/engines/<program>-<version>/bin
# engines.sh --where NAME   prints that directory, whether it is there or not
#
# NAME is a folder of tests/setup/engines. Its go.mod and go.sum pin the engine and
# everything that it is made of; nothing is built that go.sum does not vouch for.
# An engine that is there already is left alone, without the network. From nothing,
# on two cores: containerd 2 to 3 minutes, crictl 2, runc half a minute.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/.cache/engines
GO=${GO:-go}
recipe=1 # one more when the way of building changes

die() { echo "engines: $*" >&2; exit 1; }
usage() { die "name one or more of: $(cd "$here/engines" && echo *)"; }

# pinned MODULE FOLDER: the version that go.mod asks for, without the v.
pinned() {
	sed -n "s|^\(require\)\{0,1\}[[:space:]]*$1 v\([^ ]*\).*|\2|p" "$2/go.mod"
}

# describe NAME: sets source, module, program and version.
describe() {
	source=$here/engines/$1
	[ -f "$source/go.mod" ] || usage
	case $1 in
	containerd-1.*) module=github.com/containerd/containerd program=containerd ;;
	containerd-*) module=github.com/containerd/containerd/v2 program=containerd ;;
	crictl) module=sigs.k8s.io/cri-tools program=crictl ;;
	runc-*) module=github.com/opencontainers/runc program=runc ;;
	*) usage ;;
	esac
	version=$(pinned "$module" "$source")
	[ -n "$version" ] || die "$source/go.mod does not name $module"
	bin=$cache/$program-$version/bin
}

# make_go CGO TAGS PACKAGE...: builds packages of the module into $new.
make_go() {
	cgo=$1 tags=$2
	shift 2
	# The folder is a module of its own and -mod=readonly: a sum that is missing
	# or wrong ends the build.
	if ! (cd "$source" && CGO_ENABLED=$cgo GOFLAGS=-mod=readonly GOWORK=off \
		"$GO" build -trimpath -tags "$tags" -ldflags "-s -w $ldflags" -o "$new/" "$@") >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		die "$program $version was not built; it needs Go $(sed -n 's/^go //p' "$source/go.mod") or newer and," \
			"the first time, a Go module proxy (the whole output: $log)"
	fi
}

build() {
	describe "$1"
	stamp=$(echo "$recipe" | cat - "$source/go.mod" "$source/go.sum" | sha256sum)
	[ "$(cat "$bin/.complete" 2>/dev/null)" = "$stamp" ] && return
	command -v "$GO" >/dev/null || die "there is no \"$GO\" here; see make need-go"
	echo "set-up: building $program $version from its Go modules, without a word"
	new=$bin.new log=$cache/$program-$version.log ldflags=
	rm -rf "$new"
	mkdir -p "$new"
	case $program in
	containerd)
		ldflags="-X $module/version.Version=$version"
		no="no_btrfs,no_devmapper,no_zfs,no_aufs"
		make_go 0 "$no" "$module/cmd/containerd" "$module/cmd/ctr"
		make_go 0 "$no,no_grpc" "$module/cmd/containerd-shim-runc-v2"
		;;
	crictl)
		ldflags="-X $module/pkg/version.Version=$version"
		make_go 0 "" "$module/cmd/crictl"
		;;
	runc)
		pkg-config --exists libseccomp 2>/dev/null || die "runc needs libseccomp: apt-get install libseccomp-dev pkg-config"
		make_go 1 seccomp "$module"
		;;
	esac
	echo "$stamp" >"$new/.complete"
	rm -rf "$bin"
	mv "$new" "$bin"
	rm -f "$log"
}

case ${1:-} in
"") usage ;;
--where)
	describe "${2:-}"
	echo "$bin"
	;;
*)
	mkdir -p "$cache"
	exec 9>"$cache/.lock" # two runs at once would build into one place
	flock -n 9 || { echo "set-up: waiting for another run of engines.sh"; flock 9; }
	for name; do build "$name"; done
	;;
esac
