# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # for suites
#
# Open MPI, for suites that source this file after lib.sh

# libfabric's psm provider is loaded with the others, and its library is a link that the package's postinst makes
psm=(/usr/lib/libpsm1/libpsm_infinipath.so.1.*)
mkdir -p /run/lib
ln -sf "${psm[0]}" /run/lib/libpsm_infinipath.so.1
export LD_LIBRARY_PATH=/run/lib

# In place of ssh. orted looks for it, too
readonly AGENT=/run/agent
readonly MPIRUN=(mpirun.openmpi --allow-run-as-root --oversubscribe --map-by node --mca plm_rsh_agent "$AGENT"
	--mca plm_rsh_no_tree_spawn 1 --mca orte_keep_fqdn_hostnames 1 --mca osc '^ucx,rdma')
readonly MPI_OVER_SIW=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm'
	-x FI_PROVIDER='verbs;ofi_rxm' -x FI_VERBS_IFACE=eth0 -x LD_LIBRARY_PATH)
readonly MPI_OVER_TCP=(--mca pml ob1 --mca btl 'tcp,self')

# namespace_agent COMMAND: the agent; COMMAND prints the namespace of the address $1
namespace_agent() {
	cat >"$AGENT" <<-END
		#!/bin/bash
		netns=\$($1)
		shift
		exec ip netns exec "\$netns" bash -c "\$*"
	END
	chmod +x "$AGENT"
}
