# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Associations and peers of RFC 5043, for suites that source this file after lib.sh.

# shellcheck disable=SC2034 # for suites that source this
SCTPPEER=$TESTS/sctppeer.py

# Messages: a client-server Enhanced Initiate and Accept with depths of 8 (S1 and S2 with A=0)
# shellcheck disable=SC2034 # for suites that source this
INITIATE=000500080008
# shellcheck disable=SC2034
ACCEPT=000600080008

# assocs NETNS [PORT]: the lines of SCTP's table, of one port if so asked
# shellcheck disable=SC2016 # of awk
assocs() {
	within "$1" awk -v port="${2:-}" 'NR > 1 && (port == "" || $12 == port || $13 == port)' /proc/net/sctp/assocs
}

no_assocs() { # [PORT]
	[[ -z $(assocs a "${1:-}")$(assocs b "${1:-}") ]]
}

has_assoc() { # [PORT]
	[[ -n $(assocs a "${1:-}") ]]
}

has_socket() { # PORT ADDRESS: of a listener in b
	grep -qE " 10 +[0-9]+ +$1 .* $2( |$)" <(within b cat /proc/net/sctp/eps)
}

# The peer's association has been made
has_assocs() { # PORT COUNT
	[[ $(assocs a "$1" | wc -l) -ge $2 ]]
}

# rdmafirst's server in b, and a host of its own on a's interface
plays_raw() { # PORT WHAT STREAMS OPTION...
	within b ip neigh replace 10.77.0.99 lladdr "$(within a cat /sys/class/net/eth0/address)" dev eth0
	start server b 100 "$RDMAFIRST" server 10.77.0.2 "$1" --timeout 90 "${@:4}"
	wait_listener 10.77.0.2 "$1"
	run_well peer a 90 "$TESTS/sctpraw.py" "$2" 10.77.0.99 10.77.0.2 "$(within b cat /sys/class/net/eth0/address)" "$1" $INITIATE "$3"
	within b ip neigh del 10.77.0.99 dev eth0
}

# Each fragment of one byte costs the receive buffer that and a struct sk_buff, which has 232 bytes or less: 1000 of them have
# to fill it
parts_of_a_message() { # PORT STREAMS
	local default
	default=$(</proc/sys/net/core/rmem_default)
	echo 131072 >/proc/sys/net/core/rmem_default
	plays_raw "$1" parts "$2"
	echo "$default" >/proc/sys/net/core/rmem_default
	wait_line server '^conn 1 received 1024 ' 10
	wait_line server '^conn 1 received 5 hello' 10
}
