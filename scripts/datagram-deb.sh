# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The packages of datagram iWARP in fresh systems; scripts/deb-test --datagram sources it. Read libdgm/NOTICE first.
# shellcheck disable=SC2154 # log, top and failed are variables of that script

declare -A HOLDS=(
	[iw-mpa-datagram-dkms]='/dg_main\.c$' [libsiwdg1]='/libsiwdg\.so\.1' [libsiwdg-dev]='/infiniband/siwdg\.h$' [libdgm0]='/libdgm\.so\.0'
	[libdgm-dev]='/dgm\.h$' [dgm-tools]='/bin/dgmpeer$')
DKMS_DIR=/var/lib/dkms/iw-mpa-datagram

datagram_version() {
	sed -nE '1s/.*\(([^)]+)-[^)-]+\).*/\1/p' "$REPO/libdgm/debian/changelog"
}

test_datagram_build() {
	start_fresh || return
	in_fresh scripts/datagram deb </dev/null 2>&1 | tee "$log/lintian" || return
	! grep -E '^[EW]: (iw-mpa|lib(dgm|siwdg)|dgm)' "$log/lintian" || fail 'lintian reports the errors or warnings above' || return
	in_fresh scripts/datagram deb --version "$NEXT" --indep || return
	rm -rf "$DEBS"
	cp -r "$top/fresh/root/iw_mpa/build/datagram/deb" "$DEBS" && cp -r "$top/fresh/root/iw_mpa/build/datagram/deb-$NEXT" "$DEBS/next"
}

# Each has the notice, and its own files
test_datagram_contents() {
	local package deb
	for package in "${!HOLDS[@]}"; do
		deb=$(ls "$DEBS/${package}"_*.deb) || return
		dpkg-deb -c "$deb" | grep -E "${HOLDS[$package]}" || fail "$deb has no file ${HOLDS[$package]}" || return
		dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/share/doc/$package/copyright" | grep 'United States Patent 8,903,935' ||
			fail "the copyright file of $deb has no notice" || return
	done
	dpkg-deb --fsys-tarfile "$(ls "$DEBS"/libsiwdg1_*.deb)" | tar -xO --wildcards './usr/lib/*/libsiwdg.so.1.*' >"$log/libsiwdg.so" || return
	readelf -d "$log/libsiwdg.so" >"$log/dynamic" || return
	! grep -E 'R(UN)?PATH' "$log/dynamic" ||
		fail 'libsiwdg.so.1 has a search path of the build directory'
}

start_datagram_system() {
	mount_system root "$SYSTEM_DIR/root"
	mkdir "$top/root/debs" "$top/root/debs/next" "$top/root/debs/tests"
	cp "$DEBS"/*.deb "$top/root/debs/"
	cp "$DEBS"/next/*.deb "$top/root/debs/next/"
	cp "$REPO"/libdgm/debian/tests/* "$top/root/debs/tests/"
	files >"$top/before"
}

dkms_has() { # KERNEL VERSION
	in_system dkms status iw-mpa-datagram | grep -q "^iw-mpa-datagram/$2, $1, .*: installed" ||
		fail "dkms has not installed iw-mpa-datagram $2 for $1" || return
	[[ $(in_system ls "$DKMS_DIR" | grep -vE '^(kernel-|original_module$)') == "$2" ]] ||
		fail "dkms has another version than $2"
}

test_datagram_install() {
	in_system sh -c 'apt-get install -y /debs/*.deb' || return
	dkms_has "$KERNEL" "$VERSION" || return
	loaded_from "$KERNEL" updates/dkms siw_dg || return
	[[ $(in_system modinfo -F signer -k "$KERNEL" siw_dg) == 'DKMS module signing key' ]] ||
		fail 'siw_dg is not signed by the DKMS module signing key' || return
	# it needs nothing of iw-mpa-dkms
	[[ ,$(in_system modinfo -F depends -k "$KERNEL" siw_dg), != *,siw,* ]] || fail 'siw_dg depends on siw' || return
	in_system dpkg --verify ibverbs-providers libibverbs1 | tee "$log/verify"
	[[ ! -s $log/verify ]] || fail "files of Debian's own providers have changed" || return
	[[ -z $(in_system dpkg-divert --list '*ibverbs*') ]] || fail 'a file of libibverbs is diverted'
}

test_datagram_programs() {
	in_system sh -e /debs/tests/builds && in_system sh -ec 'ip link set lo up && sh -e /debs/tests/transfer'
}

test_datagram_machines() { # MODE
	timeout -k 10 900 "$REPO/scripts/vm" run --root "$top/root" --pair --timeout 600 --log "$log/vm-$1.kernel" -- \
		libdgm/tests/deb.sh "$1"
}

test_datagram_installed() { test_datagram_machines installed; }

test_datagram_removed() { test_datagram_machines removed; }

test_datagram_upgrade() {
	in_system sh -c 'apt-get install -y /debs/next/*.deb' || return
	dkms_has "$KERNEL" "$NEXT" || return
	loaded_from "$KERNEL" updates/dkms siw_dg || return
	[[ $(in_system sh -c 'ls -d /usr/src/iw-mpa-datagram-*') == "/usr/src/iw-mpa-datagram-$NEXT" ]] ||
		fail "/usr/src has other sources than those of $NEXT"
}

# DKMS itself: by hand, without the package
test_datagram_dkms() {
	in_system dkms remove "iw-mpa-datagram/$VERSION" --all || return
	! in_system modinfo -k "$KERNEL" siw_dg 2>/dev/null || fail 'modinfo finds siw_dg after dkms remove' || return
	in_system dkms install "iw-mpa-datagram/$VERSION" -k "$KERNEL" || return
	dkms_has "$KERNEL" "$VERSION"
}

test_datagram_remove() {
	# shellcheck disable=SC2046 # words
	in_system apt-get remove -y $(packages) || return
	! in_system modinfo -k "$KERNEL" siw_dg 2>/dev/null || fail "modinfo finds siw_dg of $KERNEL after the removal"
}

test_datagram_purge() {
	# shellcheck disable=SC2046 # words
	in_system dpkg --purge $(packages) || return
	nothing_is_left
}

test_datagram() {
	VERSION=$(datagram_version)
	NEXT=$VERSION+1
	if [[ -z $built ]]; then
		run 'datagram: a fresh system builds the packages, lintian reports nothing' test_datagram_build
		[[ $failed -eq 0 ]] || return
		! mountpoint -q "$top/fresh" || umount "$top/fresh"
	fi
	run 'datagram: each package has its files and the notice' test_datagram_contents
	start_datagram_system
	run "datagram: apt installs $VERSION, dkms builds siw_dg for $KERNEL" test_datagram_install
	run 'datagram: programs compile with the headers, dgm-send transfers a file' test_datagram_programs
	run 'datagram: ibv_ud_pingpong between two machines; the module unloads while a peer sends' test_datagram_installed
	run 'datagram: dkms removes the module and installs it again' test_datagram_dkms
	run 'datagram: a kernel of another series is left alone' test_other_series
	run "datagram: apt upgrades the module to $NEXT" test_datagram_upgrade
	run 'datagram: removed, modprobe finds no siw_dg' test_datagram_remove
	run 'datagram: removed, no link of type siw_dg can be made' test_datagram_removed
	run 'datagram: purged, nothing is left' test_datagram_purge
	return "$failed"
}
