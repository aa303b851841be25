#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/links.sh [REGEX]
#
# Links on interfaces of all kinds: with the MAC address of another interface, on a VLAN and its parent, with the
# same link-local address, on tun, on lo, and with a MAC address that changes. Namespaces a and b are joined by a
# second pair of interfaces, eth1, with links siw2 in a and siw3 in b.
#
# Runs as links: 300 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

# serve NAME NETNS ADDRESS PORT
serve() {
	start "$1" "$2" 90 rping -s -P -a "$3" -p "$4"
	wait_for 30 "a listener on port $4" socket_listens "$4"
}

# ping_by LINK NETNS ADDRESS PORT: connects, and checks that the client's connection belongs to the link. LINK may be
# a pattern of grep
ping_by() {
	run_well client "$2" 40 rping -c -a "$3" -p "$4" -C 3
	start held "$2" 60 rping -c -a "$3" -p "$4" -C 1000000
	wait_for 30 'the connection' has_connection "$4"
	client_is_on "$1" "$4" || fail "the client is not on $1: $(rdma resource show cm_id | grep ":$4 ")"
	stop held
}

has_connection() { # PORT
	rdma resource show cm_id | grep -q "state CONNECT .*dst-addr [^ ]*:$1 "
}

client_is_on() { # LINK PORT
	rdma resource show cm_id | grep "state CONNECT .*dst-addr [^ ]*:$2 " | grep -q "^link $1/1 "
}

mac_of() { # NETNS NETDEV
	within "$1" cat "/sys/class/net/$2/address"
}

# ---- one MAC address on two interfaces

second_pair() {
	ip link add eth1 netns a type veth peer name eth1 netns b
	local netns host
	for netns in a b; do
		host=$([[ $netns == a ]] && echo 1 || echo 2)
		ip -n "$netns" link set eth1 address "$(mac_of "$netns" eth0)"
		ip -n "$netns" addr add "10.79.0.$host/24" dev eth1
		ip -n "$netns" link set eth1 up
	done
	add_device a siw2 eth1
	add_device b siw3 eth1
	ip netns exec a ping -q -c 1 -W 5 10.79.0.2 >/dev/null
	ip netns exec b ping -q -c 1 -W 5 10.79.0.1 >/dev/null
}

one_mac() { # ADDRESS-OF-SERVER PORT
	[[ $(mac_of a eth0) == "$(mac_of a eth1)" && $(mac_of b eth0) == "$(mac_of b eth1)" ]] || fail 'two MAC addresses'
	serve server b "$1" "$2"
	[[ $1 == 10.79.0.2 ]] || ping_by siw0 a 10.77.0.2 "$2"
	[[ $1 == 10.77.0.2 ]] || ping_by siw2 a 10.79.0.2 "$2"
	stop server
}

# ---- VLANs

has_vlans() { modprobe -q 8021q 2>/dev/null; }

add_vlan() { # NETNS HOST
	ip -n "$1" link add link eth0 name eth0.5 type vlan id 5
	ip -n "$1" addr add "10.80.0.$2/24" dev eth0.5
	ip -n "$1" link set eth0.5 up
}

add_vlans() {
	add_vlan a 1
	add_vlan b 2
	ip netns exec a ping -q -c 1 -W 5 10.80.0.2 >/dev/null
	ip netns exec b ping -q -c 1 -W 5 10.80.0.1 >/dev/null
}

vlan_of_parent() {
	add_vlans
	serve server b 10.80.0.2 7410
	ping_by siw0 a 10.80.0.2 7410
	stop server
}

vlan_beside_parent() {
	add_device a siwv eth0.5
	add_device b siww eth0.5
	serve server b 0.0.0.0 7412
	serve exact b 10.80.0.2 7413
	ping_by siwv a 10.80.0.2 7412
	ping_by siwv a 10.80.0.2 7413
	ping_by siw0 a 10.77.0.2 7412
	stop server
	stop exact
	rdma link del siwv
	rdma link del siww
}

# ---- link-local addresses

same_link_local() { # ADDRESS-OF-SERVER PORT LINK...
	local port=$2 link
	serve server b "$1" "$port"
	for link in "${@:3}"; do
		case $link in
		siw0) ping_by siw0 a fe80::b%eth0 "$port" ;;
		siw2) ping_by siw2 a fe80::b%eth1 "$port" ;;
		esac
	done
	stop server
}

add_link_local() {
	local netdev
	for netdev in eth0 eth1; do
		ip -n a addr add fe80::a/64 dev "$netdev" nodad
		ip -n b addr add fe80::b/64 dev "$netdev" nodad
	done
	for netdev in eth0 eth1; do
		ip netns exec a ping -q -c 1 -W 5 "fe80::b%$netdev" >/dev/null
	done
}

# ---- tun

has_tun() { modprobe -q tun 2>/dev/null || [[ -e /sys/class/misc/tun ]]; }

on_tun() {
	ip netns exec a ip tuntap add tun0 mode tun
	ip -n a addr add 10.81.0.1/24 dev tun0
	ip -n a link set tun0 up
	add_device a siwt tun0
	serve server a 10.81.0.1 7420
	ping_by siwt a 10.81.0.1 7420
	stop server
}

# ---- lo

on_loopback() { # LINK ADDRESS PORT [ADDRESS-OF-SERVER]
	serve server a "${4:-$2}" "$3"
	ping_by "$1" a "$2" "$3"
	stop server
}

loopback() { # LINK PORT
	on_loopback "$1" 127.0.0.1 "$2"
	on_loopback "$1" ::1 "$(($2 + 1))"
}

# A device of namespace b is then the first of the host
after_another() {
	rdma link del siw0
	add_device a siw0
	loopback 'siw[02]' 7428
}

with_link_on_lo() { # PORT
	add_device a siwlo lo
	loopback siwlo "$1"
	on_loopback siwlo 127.0.0.1 $(($1 + 2)) 0.0.0.0
	on_loopback siwlo ::1 $(($1 + 3)) ::
	# The connection to another address of the host arrives on lo
	on_loopback siw0 10.77.0.1 $(($1 + 4)) 0.0.0.0
	rdma link del siwlo
}

only_link() {
	rdma link del siw0
	rdma link del siw1
	add_device a siwlo lo
	loopback siwlo 7430
	rdma link del siwlo
	add_device a siw0
	add_device b siw1
}

ten_links() {
	local i
	for i in 1 2 3 4; do
		ip -n a link add "v$i" type veth peer name "w$i"
		ip -n a link set "v$i" up
		ip -n a link set "w$i" up
		add_device a "siwv$i" "v$i"
		add_device a "siww$i" "w$i"
	done
	with_link_on_lo 7450
	for i in 1 2 3 4; do
		ip -n a link del "v$i"
	done
}

# ---- a MAC address that changes

gid_of() { # DEVICE
	cat "/sys/class/infiniband/$1/ports/1/gids/0"
}

# The GID of iWARP: the MAC address, then zeros
expected_gid() { # MAC
	tr -d : <<<"$1" | sed -E 's/^(....)(....)(....)$/\1:\2:\3:0000:0000:0000:0000:0000/'
}

has_gid() { # DEVICE MAC
	[[ $(gid_of "$1") == "$(expected_gid "$2")" ]]
}

mac_changes() {
	local mac=02:00:77:00:49:0b
	has_gid siw3 "$(mac_of b eth1)" || fail "the GID is $(gid_of siw3) before"
	ip -n b link set eth1 address $mac
	ip -n a neigh flush dev eth1
	ip netns exec a ping -q -c 1 -W 5 10.79.0.2 >/dev/null
	serve server b 10.79.0.2 7460
	ping_by siw2 a 10.79.0.2 7460
	stop server
	serve server a 10.79.0.1 7461
	ping_by siw3 b 10.79.0.1 7461
	stop server
	wait_for 30 "the GID of $mac" has_gid siw3 $mac
}

# ---- a listener whose socket is destroyed

# ss -K needs CONFIG_INET_DIAG_DESTROY
can_destroy() {
	local able=1 pid
	ncat -l 127.0.0.1 7475 &
	pid=$!
	wait_for 30 'ncat' socket_listens 7475
	ss -K -ltnH 'sport = :7475' >/dev/null 2>&1 || true
	! socket_listens 7475 || able=''
	kill "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
	[[ $able ]]
}

listens_where() { # PORT
	ip netns exec b ss -ltnH "sport = :$1" | awk '{ print $4 }' | sort | paste -sd' '
}

listens_there() { # WHERE PORT
	[[ $(listens_where "$2") == "$1" ]]
}

listens_again() { # ADDRESS PORT
	local of
	of=$(listens_where "$2")
	ip netns exec b ss -K -ltnH "sport = :$2" >/dev/null
	wait_for 20 'the listener' socket_listens "$2"
	wait_for 20 "a listener on $of" listens_there "$of" "$2"
}

destroyed_listener() { # ADDRESS PORT
	local i
	serve server b "$1" "$2"
	ping_by siw2 a 10.79.0.2 "$2"
	for i in 1 2 3; do
		listens_again "$1" "$2"
		ping_by siw2 a 10.79.0.2 "$2"
	done
	stop server
	! socket_listens "$2" || fail 'it listens after its program has ended'
}

warnings() {
	dmesg | grep -c 'WARNING:' || true
}

# On an unmodified kernel the listener is released twice
program_of_a_destroyed_listener_ends() {
	local before
	before=$(warnings)
	serve server b 10.79.0.2 7473
	ip netns exec b ss -K -ltnH 'sport = :7473' >/dev/null
	stop server KILL
	[[ $(warnings) == "$before" ]] || fail "$(dmesg | grep 'WARNING:' | tail -n 1)"
}

# ---- source ports

# The clients' source addresses as rdma_cm reports them
sources() { # PORT
	rdma resource show cm_id | sed -n "s/.*state CONNECT .*src-addr \([^ ]*\) dst-addr [^ ]*:$1 .*/\1/p" | sort
}

number_of_sources() { # PORT NUMBER
	(($(sources "$1" | wc -l) == $2))
}

# rdma_cm chooses source ports of forty; a TCP program has bound every other one
busy_ports() { # PORT
	# shellcheck disable=SC2016 # variables of Perl
	local range i bind='socket my $s, PF_INET, SOCK_STREAM, 0;
		bind $s, sockaddr_in($_, inet_aton("10.77.0.1")) or die "$_: $!"; push @s, $s'
	range=$(within a sysctl -n net.ipv4.ip_local_port_range)
	start server b 200 rping -s -P -a 10.77.0.2 -p "$1"
	wait_for 30 "a listener on port $1" socket_listens "$1"
	start holder a 200 perl -MSocket -e "for (0 .. 19) { \$_ = 42000 + 2 * \$_; $bind } syswrite STDOUT, qq(bound\\n); sleep"
	wait_line holder '^bound' 30
	within a sysctl -qw net.ipv4.ip_local_port_range='42000 42039'
	for i in {1..8}; do
		start "client$i" a 100 rping -c -a 10.77.0.2 -p "$1" -C 1000000
		wait_for 30 "connection $i" number_of_sources "$1" "$i"
	done
	within a sysctl -qw net.ipv4.ip_local_port_range="$range"
	is 'source addresses' "$(sources "$1")" "$(within a ss -tnH "dport = :$1" | awk '{ print $4 }' | sort)"
	for i in {1..8}; do
		stop "client$i"
	done
	stop holder
}

second_pair
check 'F139: rping connects while a TCP program has bound half of the local port range' busy_ports 7480
check 'F92: two interfaces with one MAC address: a server on all addresses accepts on both' one_mac 0.0.0.0 7401
check 'F92: two interfaces with one MAC address: a server on the address of the first accepts' one_mac 10.77.0.2 7402
check 'F92: two interfaces with one MAC address: a server on the address of the second accepts' one_mac 10.79.0.2 7403
if has_vlans; then
	check 'F92: connections over a VLAN without a siw link use the link of its parent interface' vlan_of_parent
	check "F92: connections over a VLAN with a siw link use the VLAN's link, connections over the parent interface use the parent's link" vlan_beside_parent
else
	note 'this kernel has no VLANs'
fi
add_link_local
check 'F93: one link-local address on two interfaces: a server on all addresses accepts on both' same_link_local :: 7404 siw0 siw2
check 'F93: one link-local address on two interfaces: a server on the address of the first accepts' same_link_local fe80::b%eth0 7405 siw0
check 'F93: one link-local address on two interfaces: a server on the address of the second accepts' same_link_local fe80::b%eth1 7406 siw2
if has_tun; then
	check 'F94: rping connects over a siw link on a tun interface' on_tun
else
	note 'this kernel has no tun'
fi
check 'F95: rping connects to 127.0.0.1 and ::1 without a siw link on lo' loopback 'siw[02]' 7426
check 'F166: rping connects to 127.0.0.1 and ::1 without a siw link on lo if the host has a siw link of another namespace' after_another
check 'F95: rping connects to 127.0.0.1 and ::1 with siw links on lo and on other interfaces' with_link_on_lo 7440
check 'F95: rping connects to 127.0.0.1 and ::1 with ten siw links' ten_links
check 'F95: rping connects to 127.0.0.1 and ::1 if the only siw link is on lo' only_link
if can_destroy; then
	check 'F153: a program ends after ss -K has destroyed the socket of its listener' program_of_a_destroyed_listener_ends
	check 'F97: a listener on one address listens again after ss -K has destroyed its socket' destroyed_listener 10.79.0.2 7470
	check 'F97: a listener on all addresses listens again after ss -K has destroyed its socket' destroyed_listener 0.0.0.0 7471
else
	note 'this kernel does not destroy sockets'
fi
check "F96: a new MAC address of the interface changes the device's GID, and rping connects" mac_changes
# Other suites count devices
rdma link del siw2
rdma link del siw3
ip -n a link del eth1
finish
