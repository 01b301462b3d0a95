#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# examples.sh NAME...        builds what the examples are tried with, into
#                            .cache/engines/<name>-<version>/bin
# examples.sh --where NAME   prints that directory, whether it is there or not
#
# NAME is kubernetes (etcd, kube-apiserver, kubelet) or compose. The go.mod and
# go.sum in the folder of that name pin it and everything that it is made of. What
# is there already is left alone, without the network. From nothing, on two idle
# cores: kubernetes 4 minutes, compose 2.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/.cache/engines
GO=${GO:-go}
recipe=1 # one more when the way of building changes

die() { echo "examples: $*" >&2; exit 1; }

# describe NAME: sets source, version, ldflags and programs (package:file ...).
describe() {
	source=$here/$1
	case $1 in
	kubernetes)
		module=k8s.io/kubernetes
		programs="go.etcd.io/etcd/server/v3:etcd $module/cmd/kube-apiserver:kube-apiserver $module/cmd/kubelet:kubelet"
		;;
	compose)
		module=github.com/docker/compose/v2
		programs=$module/cmd:docker-compose
		;;
	*) die "name kubernetes or compose" ;;
	esac
	version=$(sed -n "s|^\(require\)\{0,1\}[[:space:]]*$module v\([^ ]*\).*|\2|p" "$source/go.mod")
	[ -n "$version" ] || die "$source/go.mod does not name $module"
	case $1 in
	kubernetes)
		# Without them the programs say v0.0.0, which clients do not take.
		v=k8s.io/component-base/version
		minor=${version#*.}
		ldflags="-X $v.gitVersion=v$version -X $v.gitMajor=${version%%.*} -X $v.gitMinor=${minor%%.*}"
		;;
	compose) ldflags="-X $module/internal.Version=v$version" ;;
	esac
	bin=$cache/$1-$version/bin
}

build() {
	describe "$1"
	stamp=$(echo "$recipe" | cat - "$source/go.mod" "$source/go.sum" | sha256sum)
	[ "$(cat "$bin/.complete" 2>/dev/null)" != "$stamp" ] || return 0
	command -v "$GO" >/dev/null || die "there is no \"$GO\" here; see make need-go"
	echo "set-up: building $1 $version from its Go modules, without a word"
	new=$bin.new log=$cache/$1-$version.log
	rm -rf "$new"
	mkdir -p "$new"
	for program in $programs; do
		# -mod=readonly: a sum that is missing or wrong ends the build.
		if ! (cd "$source" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off \
			"$GO" build -trimpath -ldflags "-s -w $ldflags" -o "$new/${program##*:}" "${program%:*}") >"$log" 2>&1; then
			tail -n 20 "$log" >&2
			die "${program##*:} $version was not built; it needs Go $(sed -n 's/^go //p' "$source/go.mod") or newer and," \
				"the first time, a Go module proxy (the whole output: $log)"
		fi
	done
	echo "$stamp" >"$new/.complete"
	rm -rf "$bin"
	mv "$new" "$bin"
	rm -f "$log"
}

case ${1:-} in
"") die "name kubernetes or compose" ;;
--where)
	describe "${2:-}"
	echo "$bin"
	;;
*)
	mkdir -p "$cache"
	exec 9>"$cache/.lock-examples" # two runs at once would build into one place
	flock 9
	for name; do build "$name"; done
	;;
esac
