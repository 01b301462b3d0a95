#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# engines-docker.sh         builds a current Docker engine for the tests out of its
#                           modules: dockerd and docker-proxy, the docker command
#                           (Debian's is too old for it), and by engines.sh runc
#                           and containerd
# engines-docker.sh --where prints its directory, whether it is there or not
#
# The directory, .cache/engines/docker-VERSION/bin, is what to put before PATH. What
# is there already is left alone, without the network. From nothing, on two cores:
# 10 minutes.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# Versions, and the hashes of their sources; the hashes of what they are built on
# are in the go.sum that comes with each.
docker=v2.0.0-beta.24 docker_sum=h1:sWv7EckkDJhpraR9yUjkw1XeVf39+MWd58E22PYloNA=
cli=v29.8.2+incompatible cli_sum=h1:2zgdFuoFst2T80oS42vhKGxkd0JRo305eIEKTsxR7pQ=

root=$(cd "$(dirname "$0")/../.." && pwd)
engines=$root/.cache/engines
bin=$engines/docker-${docker#v}/bin

die() { echo "engines: $*" >&2; exit 1; }

case ${1:-} in
"") ;;
--where) echo "$bin"; exit ;;
*) die "do not know \"$1\"" ;;
esac
"$root/tests/setup/host.sh" seccomp
"$root/tests/setup/engines.sh" containerd-2.4 runc-1.5
mkdir -p "$bin"
exec 9>"$engines/.lock" # two runs at once would build into one place
flock 9
for name in containerd-2.4 runc-1.5; do
	for program in "$("$root/tests/setup/engines.sh" --where $name)"/*; do
		ln -sfn "../../${program#"$engines/"}" "$bin/$(basename "$program")"
	done
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# fetched MODULE VERSION SUM: the directory of the module's source, checked.
fetched() {
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
	echo "set-up: building $1 from its Go modules, without a word"
}

export CGO_ENABLED=0
for program in dockerd docker-proxy; do
	if absent $program; then
		dir=$(fetched github.com/moby/moby/v2 "$docker" "$docker_sum")
		build "$dir" $program ./cmd/$program -ldflags "-X github.com/moby/moby/v2/dockerversion.Version=${docker#v}"
	fi
done
if absent docker; then
	dir=$(fetched github.com/docker/cli "$cli" "$cli_sum")
	# It names what it is built on in files that go does not look for.
	cp -r "$dir" "$work/cli"
	chmod -R u+w "$work/cli"
	rm -rf "$work/cli/vendor"
	mv "$work/cli/vendor.mod" "$work/cli/go.mod"
	mv "$work/cli/vendor.sum" "$work/cli/go.sum"
	version=${cli#v}
	build "$work/cli" docker ./cmd/docker -ldflags "-X github.com/docker/cli/cli/version.Version=${version%+*}"
fi
