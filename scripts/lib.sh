# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Shared by the scripts of this directory; sourced, never run.

# shellcheck disable=SC2034 # for scripts that source this
REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/iw_mpa

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# The header comment of the calling script is its --help.
usage() {
	sed -n '/^# Usage:/,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$REPO/scripts/${0##*/}"
}

# in the script that sources this
case ${1:-} in
-h | --help) usage && exit 0 ;;
esac

# files_of TOPIC/NAME: prints our files that come with this patch, from patches/files
files_of() {
	awk -v patch="$1" '/^#/ { next } /^\t/ { if (mine) print substr($0, 2); next } { mine = $0 == patch }' \
		"$REPO/patches/files"
}

# hash_of STRING…: a short key for a list of strings
hash_of() {
	printf '%s\0' "$@" | sha256sum | cut -c1-16
}

# hash_tree DIR: a short key for the names and contents of all files below DIR
hash_tree() {
	(cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum) |
		sha256sum | cut -c1-16
}

# prune DIR GLOB: keeps the two newest entries and all that were used in the last two hours
prune() {
	find "$1" -mindepth 1 -maxdepth 1 -name "$2" ! -name '.*' -printf '%T@ %p\n' |
		sort -rn | tail -n +3 | cut -d' ' -f2- | while IFS= read -r old; do
		if [[ -n $(find "$old" -maxdepth 0 -mmin +120) ]]; then
			rm -rf "$old"
		fi
	done
}

# product KIND KEY BUILDER [ARG…]: sets OUT to the directory $CACHE/KIND/KEY. If the directory does
# not exist, `BUILDER ARG… DIR` fills a temporary one, which is then renamed into place.
product() {
	local kind=$1 key=$2 lock
	shift 2
	OUT=$CACHE/$kind/$key
	if [[ ! -d $OUT ]]; then
		mkdir -p "$CACHE/$kind" "$CACHE/tmp"
		exec {lock}>"$CACHE/$kind/.lock"
		flock "$lock"
		if [[ ! -d $OUT ]]; then
			# mmdebstrap leaves /sys and /dev mounted there when it is killed
			rm -rf --one-file-system "$CACHE/tmp/$kind".*
			mkdir "$CACHE/tmp/$kind.$$"
			"$@" "$CACHE/tmp/$kind.$$"
			mv "$CACHE/tmp/$kind.$$" "$OUT"
			prune "$CACHE/$kind" '*'
		fi
		exec {lock}>&-
	fi
	touch "$OUT"
}

# Modules that scripts/vm-init needs before it has the machine's file system
BOOT_MODULES=(virtio_pci virtio_console 9pnet_virtio 9p overlay)

# build_initrd RELEASE ROOT DIR: makes DIR/initrd for the kernel RELEASE whose modules are in ROOT. If
# RELEASE is empty, the kernel has these modules built in
build_initrd() {
	local release=$1 root=$2 out=$3 module path
	mkdir -p "$out/root/"{bin,modules,proc,sys,dev}
	cp /bin/busybox "$out/root/bin/"
	install -m 755 "$REPO/scripts/vm-init" "$out/root/init"
	for module in ${release:+"${BOOT_MODULES[@]}"}; do
		modprobe -d "$root" -S "$release" --show-depends "$module"
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while IFS= read -r path; do
		# busybox loads no compressed module
		case $path in
		*.xz) xz -dc "$path" >"$out/root/modules/$(basename "$path" .xz)" ;;
		*) cp "$path" "$out/root/modules/" ;;
		esac
		basename "$path" .xz
	done >"$out/root/modules/list"
	(cd "$out/root" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) >"$out/initrd"
	rm -rf "$out/root"
}

# apt's places of Debian packages, rewritten as places of source packages of a release
source_list() { # RELEASE
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg options=''
	[[ ! -e $keyring ]] || options="[signed-by=$keyring] "
	# shellcheck disable=SC2016 # apt-get expands it
	apt-get indextargets --format "deb-src $options"'$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian' | sed -E "s/ [a-z]+([^ ]* [^ ]+)\$/ $1\1/" | sort -u
}

# download_debian_source DIR RELEASE PACKAGE VERSION OPTION: the files of a source package, as `apt-get source OPTION` gets them
download_debian_source() {
	local out=$1 release=$2 package=$3 version=$4
	local -a apt=(apt-get -qq -o "Dir::Etc::sourcelist=$out/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$out/apt/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
		-o APT::Sandbox::User=root)
	echo "${0##*/}: getting the source of $package $version" >&2
	mkdir -p "$out"/apt/lists/partial
	source_list "$release" >"$out/apt/sources.list"
	[[ -s $out/apt/sources.list ]] || die 'apt knows no source of Debian packages (apt-get update?)'
	(cd "$out" && "${apt[@]}" update && "${apt[@]}" source "$5" "$package=$version") >&2 ||
		die "cannot get the source of $package $version of Debian's $release"
	rm -rf "$out/apt"
}
