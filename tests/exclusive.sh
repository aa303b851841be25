#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/exclusive.sh [REGEX]
#
# The exclusive mode of RDMA's namespaces, in which a link belongs to one namespace. The suite makes the namespaces
# a and b anew, so that it needs a machine of its own, and all its cases in their order.
#
# Runs as exclusive: 300 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

has_link() { # NETNS LINK
	ip netns exec "$1" rdma link show | grep -q "^link $2/1 "
}

initial_has_link() { # LINK
	rdma link show | grep -q "^link $1/1 "
}

set_mode() { # MODE
	rdma system set netns "$1" >"$WORK/mode.log" 2>&1
}

in_mode() { # MODE
	rdma system show | grep -q "netns $1"
}

# rdma-system(8): EBUSY if there are network namespaces
mode_is_busy() { # MODE
	! set_mode "$1" || fail "the mode is $1"
	grep -q 'Device or resource busy' "$WORK/mode.log" || fail "$(cat "$WORK/mode.log")"
}

# The end of a namespace takes its time
mode_can_be_set() { # MODE
	wait_for 120 "mode $1" set_mode "$1"
	in_mode "$1" || fail "$(rdma system show)"
}

without_namespaces() {
	rdma link del siw0
	rdma link del siw1
	ip netns del a
	ip netns del b
	mode_can_be_set exclusive
}

add_namespaces() {
	local netns
	ip netns add a
	ip netns add b
	ip link add eth0 netns a type veth peer name eth0 netns b
	for netns in a b; do
		ip -n "$netns" addr add "$(address "$netns")/24" dev eth0
		ip -n "$netns" link set lo up
		ip -n "$netns" link set eth0 up
	done
	ip netns exec a ping -q -c 1 -W 5 "$(address b)" >/dev/null
}

made_in_namespace() {
	add_namespaces
	add_device a siw0
	add_device b siw1
	initial_has_link siw0 || fail 'the initial namespace does not have siw0'
	! has_link a siw0 || fail 'a has siw0'
	run client a 20 rping -s -a "$(address a)" -p 7500 -C 1
	[[ $STATUS -ne 0 && $STATUS -ne 124 ]] || fail 'a program of a can listen'
}

moved() {
	rdma dev set siw0 netns a
	rdma dev set siw1 netns b
	has_link a siw0 || fail 'a does not have siw0'
	has_link b siw1 || fail 'b does not have siw1'
	! has_link a siw1 || fail 'a has siw1'
	! initial_has_link siw0 || fail 'the initial namespace has siw0'
}

# In exclusive mode programs have no listeners in the other namespace to see
serve_in_b() { # PORT
	start server b 90 rping -s -P -a "$(address b)" -p "$1"
	wait_for 30 "a listener on port $1" socket_listens "$1"
}

moved_works() {
	serve_in_b 7501
	run_well client a 30 rping -c -a "$(address b)" -p 7501 -C 3
}

deleted_inside() {
	within a rdma link del siw0
	! has_link a siw0 || fail 'a has siw0'
	add_device a siw0
	rdma dev set siw0 netns a
	moved_works
}

is_connected() {
	ip netns exec a ss -tnH state established '( dport = :7502 )' | grep -q .
}

gone() { # LINK
	! initial_has_link "$1"
}

# Programs in a namespace that has no name any more keep it
deleted_under_traffic() {
	serve_in_b 7502
	start client a 90 rping -c -a "$(address b)" -p 7502 -C 1000000
	wait_for 30 'the connection' is_connected
	ip netns del a
	ip netns del b
	mode_is_busy shared
	stop client
	stop server
	wait_for 120 'the end of siw0' gone siw0
	wait_for 120 'the end of siw1' gone siw1
	mode_can_be_set shared
}

check 'netns mode exclusive is rejected with EBUSY while other network namespaces exist' mode_is_busy exclusive
check 'netns mode exclusive can be set after the other network namespaces are deleted' without_namespaces
check 'netns mode exclusive: a link added inside a namespace appears in the initial namespace and cannot be used inside' made_in_namespace
check 'netns mode exclusive: a link moved to the namespace of its interface appears only there' moved
check 'netns mode exclusive: programs in two namespaces connect over their moved links' moved_works
check 'netns mode exclusive: a link is deleted in its namespace, added and moved again, and programs connect' deleted_inside
check 'netns mode shared is rejected until all programs of deleted namespaces have ended' deleted_under_traffic
finish
