#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/persist.sh [REGEX]
#
# The units and rules of iw-mpa-tools (tools/system), with Debian's systemd and udev: links and settings are
# there after a boot and when a device comes. systemd runs as process 1 of a PID namespace, in the first
# network namespace, with its own /run; a boot is its start.
#
# Runs as persist: 600 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly SYSTEM=${TESTS%/*}/tools/system RDMA=${TESTS%/*}/build/rdma
first() { nsenter --net=/proc/1/ns/net "$@"; }

install_files() {
	mkdir -p /usr/lib/iw-mpa /usr/lib/systemd/system /usr/lib/udev/rules.d /etc/iw-mpa
	cp "$RDMA" /usr/lib/iw-mpa/rdma
	cp "$SYSTEM/apply" /usr/lib/iw-mpa/
	sed 's/@VERSION@/0.0/' "$SYSTEM/rdma-mpa" >/usr/sbin/rdma-mpa
	chmod +x /usr/sbin/rdma-mpa
	cp "$SYSTEM"/*.service /usr/lib/systemd/system/
	cp "$SYSTEM"/*.rules /usr/lib/udev/rules.d/
	# udev looks at these devices only, and rdma-core loads no ULPs
	mkdir -p /etc/systemd/system/systemd-udev-trigger.service.d
	cat >/etc/systemd/system/systemd-udev-trigger.service.d/few.conf <<-END
		[Service]
		ExecStart=
		ExecStart=udevadm trigger --action=add --subsystem-match=net --subsystem-match=infiniband --subsystem-match=module
	END
	ln -s /dev/null /etc/systemd/system/rdma-hw.target
	ln -s /dev/null /etc/systemd/system/rdma-load-modules@.service
	cat >/etc/systemd/system/mounts.service <<-END
		[Unit]
		DefaultDependencies=no
		After=remote-fs-pre.target
		[Service]
		Type=oneshot
		ExecStart=/bin/sh -c 'rdma link >/run/links-at-mount; /usr/lib/iw-mpa/rdma mpa show configured >/run/settings-at-mount'
	END
	first ip -batch - <<-END
		link add nic0 type veth peer name nic1
		addr add 10.79.0.1/24 dev nic0
		link set nic0 up
		link set nic1 up
	END
}

boot() {
	printf '[Unit]\nDefaultDependencies=no\nWants=systemd-udevd.service systemd-udev-trigger.service mounts.service %s\n' "$*" \
		>/etc/systemd/system/boot.target
	first unshare --mount --pid --fork --kill-child --mount-proc bash -c 'mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /tmp
		exec /lib/systemd/systemd --system --unit=boot.target --log-target=console --show-status=no' >"$WORK/systemd.log" 2>&1 </dev/null &
	pid_of[systemd]=$!
	INIT=''
	wait_for 30 'systemd' find_init
}

find_init() {
	INIT=$(pgrep -f '^/lib/systemd/systemd --system --unit=boot.target' | head -n 1)
	[[ -n $INIT ]]
}

inside() { nsenter --target "$INIT" --mount --pid --net "$@"; }

shut_down() { stop systemd KILL; }

has_setting() { first "$RDMA" mpa show configured | grep -qx "mpa set $1 "; }

is_active() { inside systemctl is-active -q "$1"; }

forget() {
	local link
	for link in siw_nic0 siw_late; do
		if rdma link | grep -q "link $link/"; then
			rdma link del $link
		fi
	done
	first "$RDMA" mpa reset default
	first "$RDMA" mpa reset dev siw0
}

link_and_settings() {
	cat >/etc/iw-mpa/10.conf <<-END
		# for all
		set default revision fallback
		mpa set link siw_nic0/1 rtr read
	END
	echo 'set dev siw0 crc off' >/etc/iw-mpa/20.conf
	local round
	for round in first second; do
		boot siw@nic0.service
		wait_for 150 "the link ($round boot)" is_active siw@nic0.service
		rdma link show siw_nic0/1 | grep -q 'netdev nic0' || fail "the $round boot: siw_nic0 is not on nic0"
		# before what waits for remote-fs-pre.target
		wait_for 30 'the mounts' inside test -s /run/settings-at-mount
		inside grep -q siw_nic0 /run/links-at-mount ||
			fail "the $round boot: siw_nic0 did not exist when file systems were mounted"
		inside grep -q 'link siw_nic0/1 rtr read' /run/settings-at-mount ||
			fail "the $round boot: siw_nic0/1 had no setting 'rtr read' when file systems were mounted"
		# a device that was there before, found by udev
		wait_for 150 'the settings of siw0' has_setting 'dev siw0 crc off'
		has_setting 'default revision fallback' ||
			fail "the $round boot: the default revision is not fallback"
		has_setting 'link siw_nic0/1 rtr read' || fail "the $round boot: siw_nic0/1 has no setting 'rtr read'"
		shut_down
		forget
		! has_setting 'dev siw0 crc off' || fail 'siw0 has crc off after rdma mpa reset dev siw0'
	done
}

hot_plug() {
	echo 'set link siw_late/1 ird 4' >/etc/iw-mpa/10.conf
	echo 'set default crc required' >/etc/iw-mpa/20.conf
	boot
	wait_for 150 'udev' inside udevadm settle
	! has_setting 'link siw_late/1 ird 4' ||
		fail "rdma mpa show has a setting of siw_late before this device exists"
	first rdma link add siw_late type siw netdev nic0
	wait_for 150 'the settings of a device that comes' has_setting 'link siw_late/1 ird 4'
	shut_down
	forget
}

# The interface goes, and with it the device; both come back
interface_returns() {
	echo 'set link siw_nic0/1 ird 4' >/etc/iw-mpa/10.conf
	rm -f /etc/iw-mpa/20.conf
	SYSTEMD_OFFLINE=1 systemctl enable -q siw@nic0.service
	boot
	wait_for 150 'the settings' has_setting 'link siw_nic0/1 ird 4'
	first ip link del nic0
	wait_for 30 'the device to go' no_link
	first ip link add nic0 type veth peer name nic1
	wait_for 150 'the settings again' has_setting 'link siw_nic0/1 ird 4'
	shut_down
	forget
}

# The network comes up later than the device
down_at_boot() {
	rm -f /etc/iw-mpa/*.conf
	first ip link set nic0 down
	boot siw@nic0.service
	wait_for 150 'the link' is_active siw@nic0.service
	state_is DOWN || fail 'siw_nic0/1 is not DOWN, although nic0 is down'
	first ip link set nic0 up
	wait_for 30 'the port to be up' state_is ACTIVE
	shut_down
	forget
}

state_is() { rdma link show siw_nic0/1 | grep -q "state $1 "; }

no_link() { ! rdma link | grep -q siw_nic0; }

# A line that is wrong is named, and the others hold
wrong_line() {
	printf 'set dev siw0 crc maybe\nset dev siw0 ird 3\nbad line\nset dev siw1 ird 5\n' >/etc/iw-mpa/10.conf
	! first /usr/lib/iw-mpa/apply siw0 >"$WORK/apply.log" 2>&1 ||
		fail 'apply siw0 succeeds, although a line is invalid'
	grep -q "/etc/iw-mpa/10.conf:3: " "$WORK/apply.log" ||
		fail "apply siw0 does not report line 3: $(<"$WORK/apply.log")"
	grep -q "crc: invalid value 'maybe', use one of" "$WORK/apply.log" ||
		fail "apply siw0 does not report the value of line 1: $(<"$WORK/apply.log")"
	has_setting 'dev siw0 ird 3' || fail 'apply siw0 has not applied the valid line 2, ird 3'
	! has_setting 'dev siw1 ird 5' || fail 'apply siw0 has also applied the line of siw1'
	forget
}

# The program of the package: its help and its batch files have no "mpa"
own_name() {
	first rdma-mpa --help >"$WORK/help.log"
	has_line help '^Usage: rdma-mpa show ' || fail "rdma-mpa --help prints no usage of show: $(<"$WORK/help.log")"
	! has_line help 'rdma mpa' || fail "rdma-mpa --help has 'rdma mpa': $(grep -m 1 'rdma mpa' "$WORK/help.log")"
	first rdma-mpa -V >"$WORK/version.log"
	has_line version '^iw_mpa ' ||
		fail "rdma-mpa -V does not print the version of iw_mpa: $(<"$WORK/version.log")"
	printf '# a comment\nset dev siw0 crc off \\\n  ird 7\n\nmpa set dev siw0 ord 3\n' | first rdma-mpa -b -
	has_setting 'dev siw0 ird 7 ord 3 crc off' ||
		fail "the batch has not set ird 7, ord 3 and crc off of siw0: $(first "$RDMA" mpa show configured)"
	first rdma-mpa -j show dev siw0 | jq -e '.[0].ird == 7' >/dev/null ||
		fail 'rdma-mpa -j show dev siw0 does not print ird 7 as JSON'
	first rdma-mpa show configured >"$WORK/saved"
	first rdma-mpa reset dev siw0
	first rdma-mpa -b "$WORK/saved"
	has_setting 'dev siw0 ird 7 ord 3 crc off' ||
		fail 'the output of rdma-mpa show configured, as a batch, does not restore the settings of siw0'
	! first rdma-mpa -b - <<<'set dev siw9 crc off' 2>/dev/null ||
		fail 'rdma-mpa -b succeeds with a setting of siw9, which does not exist'
	forget
}

units_are_right() {
	local said
	said=$(systemd-analyze verify --man=no siw@eth0.service iw-mpa@siw0.service 2>&1) || true
	[[ $said != *siw@* && $said != *iw-mpa@* ]] || fail "systemd-analyze reports: $said"
}

install_files
check 'systemd-analyze verify reports nothing about siw@.service and iw-mpa@.service' units_are_right
check 'rdma-mpa supports help, -V and -b' own_name
check '/etc/iw-mpa: an invalid line is reported with its number, valid lines are applied' wrong_line
check 'boot: the siw link and its settings exist before network file systems are mounted, in two boots' link_and_settings
check 'boot: a siw link on an interface that is down becomes ACTIVE with the interface' down_at_boot
check 'hot-plug: a new siw device gets its settings from /etc/iw-mpa' hot_plug
check 'hot-plug: an interface removed and added again gets its siw link and settings' interface_returns
finish
