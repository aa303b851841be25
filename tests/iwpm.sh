#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair -- tests/iwpm.sh [REGEX]
#
# The iWARP port mapper. If iwpmd runs, iw_cm asks it for a TCP port of the host for each listener and
# each connection. For a connection it also asks the peer's iwpmd (UDP port 3935) for the port of the
# listener there. siw uses sockets of the host and needs no other port (IW_F_NO_PORT_MAP), so its ports
# are mapped to themselves. But siw connects to any port that the peer's mapper names.
# Runs on both machines.
#
# Runs as iwpm: --pair; 300 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

peer=$(other "$ROLE")
# Ports of a listener from before iwpmd runs, and of one from after
declare -A early=([a]=7901 [b]=7902) mapped=([a]=7911 [b]=7912)
# A port without a listener: the peer's mapper has to name another one
nowhere=7999

# Returns when both machines have reached it
meet() { # NAME
	: >"/run/vm/ctl/$ROLE.iwpm-$1"
	wait_for 120 "the peer, to be $1" test -e "/run/vm/ctl/$peer.iwpm-$1"
}

# The port of the socket may be another one
serve() { # PORT
	serve_forever rping -s -P -a "$(address "$ROLE")" -p "$1"
	wait_for 30 "a listener on port $1" has_listener "$(address "$ROLE")" "$1"
}

seen_connections() { # PORT
	cp "$WORK/wire.keep" "$WORK/wire.pcap"
	"$MPAPEER" decode --json --port "$1" "$WORK/wire.pcap" | jq 'map(select(.mpa)) | length'
}

has_new_connection() { # PORT COUNT
	[[ $(seen_connections "$1") -gt $2 ]]
}

# Makes one more connection to the port, and checks it and the earlier ones. A case begins without the
# JSON of the case before.
connects() { # PORT
	local before
	before=$(seen_connections "$1")
	until_served 60 30 rping -c -a "$(address "$peer")" -p "$1" -C 3 -V
	wait_for 30 "a connection to port $1 on the wire" has_new_connection "$1" "$before"
	on_the_wire wire "$1" peer_to_peer "$(seen_connections "$1")"
}

mapper_listens() { [[ -n $(ss -Hlun 'sport = :3935') ]]; }

start_iwpmd() {
	/usr/sbin/iwpmd
	wait_for 20 'iwpmd' mapper_listens
	# iwpmd now asks the kernel for existing listeners
	sleep 2
}

no_iwpmd() { ! pgrep -x iwpmd >/dev/null; }

stop_iwpmd() {
	pkill -TERM -x iwpmd
	wait_for 20 'the end of iwpmd' no_iwpmd
}

is_mapped() { # PORT
	pkill -USR1 -x iwpmd
	sleep 0.3
	grep -qE "Mapped address IPV4 $(address "$ROLE"):$1\(" "$WORK/syslog"
}

mapped_to_itself() {
	wait_for 10 'the mapping in iwpmd' is_mapped "${mapped[$ROLE]}"
	! is_mapped "${early[$ROLE]}" || fail 'a listener from before iwpmd is mapped'
}

# The peer's mapper has sent this answer to ours: 1 accept, 3 reject
answered() { # TYPE PORT
	[[ -n $(tcpdump -nr "$WORK/udp.keep" \
		"src host $(address "$peer") and udp src port 3935 and udp[8] >> 4 == $1 and udp[12:2] == $2" 2>/dev/null) ]]
}

connects_mapped() { # TYPE PORT
	connects "$2"
	wait_for 10 "the peer's mapper to answer" answered "$1" "$2"
}

# Accepts each request and names a port. A request begins with 04, ends with the mapped address and has 64 bytes
false_mapper() { # PORT
	# shellcheck disable=SC2016 # perl's variables
	perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(LocalPort => 3935, Proto => "udp") or die $!;
		while (defined(my $from = $s->recv(my $m, 256))) {
			next unless length($m) == 64 && unpack("C", $m) >> 4 == 0;
			$s->send("\x14\0\0\0" . pack("n", $ARGV[0]) . substr($m, 6, 42), 0, $from);
		}' "$1" >/dev/null 2>&1 &
}

is_connected() { rdma resource show cm_id | grep -q 'state CONNECT'; }

goes_elsewhere() { # PORT REAL-PORT
	local to before
	to=$(address "$peer")
	before=$(seen_connections "$2")
	start client "$ROLE" 60 rping -c -a "$to" -p "$1" -C 1000000
	wait_for 40 'the connection' is_connected
	rdma resource show cm_id | grep 'state CONNECT' | grep -q "dst-addr $to:$1 " ||
		fail "the program is not connected to port $1: $(rdma resource show cm_id)"
	stop client
	wait_for 10 "a connection to port $2 on the wire" has_new_connection "$2" "$before"
	[[ $(seen_connections "$1") == 0 ]] || fail "a TCP connection to port $1 exists"
}

tcpdump -Z root -U --immediate-mode -s 65535 -i eth0 -w "$WORK/udp.keep" udp port 3935 >/dev/null 2>&1 &
busybox syslogd -n -O "$WORK/syslog" &
keep_capture
serve "${early[$ROLE]}"
check "rping to machine $peer completes without iwpmd (the port mapper)" connects "${early[$peer]}"
meet without-iwpmd
start_iwpmd
serve "${mapped[$ROLE]}"
meet with-iwpmd
check 'iwpmd maps the port of a listener to itself' mapped_to_itself
check "iwpmd on both machines: rping to a mapped port of machine $peer completes" connects_mapped 1 "${mapped[$peer]}"
check "iwpmd on both machines: rping to a listener of machine $peer that was started before iwpmd completes" connects_mapped 3 "${early[$peer]}"
meet through-with-iwpmd
if [[ $ROLE == b ]]; then
	stop_iwpmd
	false_mapper "${mapped[b]}"
	false=$!
	wait_for 20 'the false mapper' mapper_listens
fi
meet with-one-iwpmd
if [[ $ROLE == a ]]; then
	check "siw connects to the TCP port that the peer's port mapper returns" goes_elsewhere "$nowhere" "${mapped[b]}"
else
	check 'iwpmd only on the other machine: rping completes' connects "${mapped[a]}"
fi
meet through-with-the-false-mapper
[[ $ROLE == a ]] || kill "$false"
meet with-no-mapper-in-b
if [[ $ROLE == a ]]; then
	check "iwpmd only on this machine: rping completes without an answer of the peer's port mapper" connects "${mapped[b]}"
	stop_iwpmd
fi
meet at-the-end
check "rping to machine $peer completes after iwpmd has ended" connects "${early[$peer]}"
meet through
finish
