// SPDX-License-Identifier: GPL-2.0
/* The harness sets the answer, so that runs do not depend on one another */
#include "rev1_peers.h"
#include "observed.h"

bool shim_peer_is_rev1;
unsigned int shim_rev1_peers;

bool iw_mpa_peer_is_rev1(const struct iw_mpa_addr *addr)
{
	(void)addr;
	return shim_peer_is_rev1;
}

void iw_mpa_peer_set_rev1(const struct iw_mpa_addr *addr)
{
	(void)addr;
	shim_rev1_peers++;
}
