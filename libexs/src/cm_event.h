// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <rdma/rdma_cma.h>

namespace libexs {

// A copy of an event of rdma_cm's, which is acknowledged
struct CmEvent {
	explicit CmEvent(const rdma_cm_event &event)
	    : id(event.id), token(reinterpret_cast<uintptr_t>(event.id->context)), type(event.event), status(event.status)
	{
		// of a request: the listener's, which the new id has inherited
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED ||
		    type == RDMA_CM_EVENT_REJECTED) {
			const auto *data = static_cast<const uint8_t *>(event.param.conn.private_data);
			if (data != nullptr)
				private_data.assign(data, data + event.param.conn.private_data_len);
			responder_resources = event.param.conn.responder_resources;
			initiator_depth = event.param.conn.initiator_depth;
		}
	}

	[[nodiscard]] bool is_request() const { return type == RDMA_CM_EVENT_CONNECT_REQUEST; }

	rdma_cm_id *id;
	uint64_t token; // the context of the id
	rdma_cm_event_type type;
	int status; // a negative errno value, or the transport's
	std::vector<uint8_t> private_data;
	uint8_t responder_resources = 0;
	uint8_t initiator_depth = 0;
};

} // namespace libexs
