// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include <rdma/rdma_cma.h>

namespace libexs {

// A copy of an event of rdma_cm's, which is acknowledged. It allocates nothing: an id with an event that is not acknowledged could not be
// destroyed.
struct CmEvent {
	explicit CmEvent(const rdma_cm_event &event)
	    : id(event.id), token(reinterpret_cast<uintptr_t>(event.id->context)), type(event.event), status(event.status)
	{
		// of a request: the listener's, which the new id has inherited
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED ||
		    type == RDMA_CM_EVENT_REJECTED) {
			const auto *from = static_cast<const uint8_t *>(event.param.conn.private_data);
			if (from != nullptr)
				length = event.param.conn.private_data_len;
			std::copy_n(from, length, data.begin());
			responder_resources = event.param.conn.responder_resources;
			initiator_depth = event.param.conn.initiator_depth;
		}
	}

	[[nodiscard]] bool is_request() const { return type == RDMA_CM_EVENT_CONNECT_REQUEST; }
	[[nodiscard]] std::span<const uint8_t> private_data() const { return std::span(data).first(length); }

	rdma_cm_id *id;
	uint64_t token; // the context of the id
	rdma_cm_event_type type;
	int status; // a negative errno value, or the transport's
	std::array<uint8_t, 255> data{};
	uint8_t length = 0; // of the private data
	uint8_t responder_resources = 0;
	uint8_t initiator_depth = 0;
};

} // namespace libexs
