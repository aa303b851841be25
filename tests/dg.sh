# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Module siw_dg, for suites that source this file after lib.sh

readonly PRODUCTS=${TESTS%/*}/build/datagram

# load_siw_dg [DIRECTORY]: the module, for programs with the provider in DIRECTORY
load_siw_dg() {
	[[ -z ${1:-} ]] || echo "driver $1/libsiwdg" >/etc/libibverbs.d/siwdg.driver
	modprobe -aq libcrc32c crc32c || true
	modprobe ib_uverbs
	insmod "$PRODUCTS/$VM_KERNEL/siw_dg.ko"
}

# Device d0 in namespace a, d1 in b
add_siw_dg_links() {
	within a rdma link add d0 type siw_dg netdev eth0
	within b rdma link add d1 type siw_dg netdev eth0
}

counter() { # DEVICE NAME
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}
