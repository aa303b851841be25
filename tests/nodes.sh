# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Many namespaces, for the files that source this one

mac() { # NUMBER
	printf '02:00:00:00:78:%02x' "$1"
}

# make_nodes COUNT: n0, n1… (10.78.0.1, 10.78.0.2…) at one bridge, with permanent neighbour entries, because ARP replies
# can get lost. The bridge knows each node's address: between two runs its memory of 300 s may pass, and then it would
# flood first packets to all.
make_nodes() {
	local i j
	sysctl -qw net.ipv4.neigh.default.gc_thresh{1,2,3}=65536
	# no packet may be lost in a burst of a thousand
	sysctl -qw net.core.netdev_max_backlog=100000
	{
		echo 'link add nodes0 type bridge'
		echo 'link set nodes0 up'
		for ((i = 0; i < $1; i++)); do
			echo "netns add n$i"
			echo "link add eth0 netns n$i index $((100 + i)) address $(mac "$i") type veth peer name node-$i"
			echo "link set node-$i master nodes0 up"
		done
	} | ip -batch -
	for ((i = 0; i < $1; i++)); do
		bridge fdb add "$(mac "$i")" dev "node-$i" master static
		{
			echo 'link set lo up'
			echo "addr add 10.78.0.$((i + 1))/24 dev eth0"
			echo 'link set eth0 up'
			for ((j = 0; j < $1; j++)); do
				((i == j)) || echo "neigh add 10.78.0.$((j + 1)) lladdr $(mac "$j") nud permanent dev eth0"
			done
		} | ip -n "n$i" -batch -
	done
}
