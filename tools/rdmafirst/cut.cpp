// SPDX-License-Identifier: GPL-2.0
// The kernel's interface, whose header and librdmacm's exclude each other
#include "cut.h"

#include <rdma/rdma_user_cm.h>
#include <unistd.h>

namespace rdmafirst {

bool disconnect_by_number(int fd, uint32_t id)
{
	struct {
		rdma_ucm_cmd_hdr header;
		rdma_ucm_disconnect disconnect;
	} command{.header = {.cmd = RDMA_USER_CM_CMD_DISCONNECT, .in = sizeof(rdma_ucm_disconnect), .out = 0},
		  .disconnect = {.id = id}};
	return ::write(fd, &command, sizeof(command)) == sizeof(command);
}

bool get_event_into(int fd, void *address)
{
	struct {
		rdma_ucm_cmd_hdr header;
		rdma_ucm_get_event get;
	} command{.header = {.cmd = RDMA_USER_CM_CMD_GET_EVENT, .in = sizeof(rdma_ucm_get_event),
			     .out = sizeof(rdma_ucm_event_resp)},
		  .get = {.response = reinterpret_cast<uintptr_t>(address)}};
	return ::write(fd, &command, sizeof(command)) == sizeof(command);
}

} // namespace rdmafirst
