// SPDX-License-Identifier: GPL-2.0
#include "endpoint.h"

#include <algorithm>

#include <fmt/format.h>

namespace rdmafirst {
namespace {

class Client {
public:
	explicit Client(const Options &options)
		: options_(options), deadline_(Clock::now() + options.timeout), channel_(make_channel()),
		  endpoint_(make_id(channel_.get()))
	{
	}

	Exit run();

private:
	Event await(std::string_view what);
	Exit resolve();
	Exit connected();
	Exit exchange();
	void disconnect();

	const Options &options_;
	Clock::time_point deadline_;
	Channel channel_;
	Endpoint endpoint_;
};

Event Client::await(std::string_view what)
{
	for (;;) {
		if (auto event = next_event(channel_.get())) {
			say(event->describe());
			return *event;
		}
		wait_readable(descriptors(channel_.get(), {}), deadline_, what);
	}
}

Exit Client::resolve()
{
	sockaddr_storage address = socket_address(options_);
	// When the ARP reply beats the kernel's own bookkeeping (veth), ib_core looks again only when
	// this time has passed: so it must be well below our deadline.
	const int ms = static_cast<int>(std::min(options_.timeout / 4, std::chrono::milliseconds(2000)).count());
	if (rdma_resolve_addr(endpoint_.id(), nullptr, reinterpret_cast<sockaddr *>(&address), ms) != 0)
		throw SystemError("rdma_resolve_addr");
	if (await("address resolution").type != RDMA_CM_EVENT_ADDR_RESOLVED)
		return Exit::failed;
	if (rdma_resolve_route(endpoint_.id(), ms) != 0)
		throw SystemError("rdma_resolve_route");
	return await("route resolution").type == RDMA_CM_EVENT_ROUTE_RESOLVED ? Exit::ok : Exit::failed;
}

// Established: sends if asked to, waits for what is to be received.
Exit Client::exchange()
{
	bool sent = !options_.send;
	bool received = !options_.receive;
	if (options_.send)
		endpoint_.post_send(*options_.send);
	while (!sent || !received || options_.hold) {
		for (const Completion &done : endpoint_.completions()) {
			if (done.status != IBV_WC_SUCCESS) {
				say(fmt::format("{} failed: {}", done.receive ? "receive" : "send",
						ibv_wc_status_str(done.status)));
				// the event that tells of the end may come behind the flushed receives
				if (options_.hold && sent && received)
					continue;
				return Exit::failed;
			}
			if (!done.receive) {
				sent = true;
				say("sent");
				continue;
			}
			received = true;
			say(fmt::format("received {} {}", done.data.size(), done.data));
			if (options_.expect && *options_.expect != done.data)
				return Exit::failed;
		}
		if (auto event = next_event(channel_.get())) {
			say(event->describe());
			return options_.hold && sent && received ? Exit::ok : Exit::failed;
		}
		if (sent && received && !options_.hold)
			break;
		const std::array endpoints{static_cast<const Endpoint *>(&endpoint_)};
		wait_readable(descriptors(channel_.get(), endpoints), deadline_,
			      sent ? "a message" : "the send to complete");
	}
	return Exit::ok;
}

void Client::disconnect()
{
	if (rdma_disconnect(endpoint_.id()) != 0)
		throw SystemError("rdma_disconnect");
	await("the end of the connection");
}

Exit Client::connected()
{
	const Exit result = exchange();
	if (result == Exit::ok && !options_.hold)
		disconnect();
	return result;
}

Exit Client::run()
{
	if (const Exit result = resolve(); result != Exit::ok)
		return result;
	endpoint_.create_qp();
	rdma_conn_param param = conn_param(options_);
	if (rdma_connect(endpoint_.id(), &param) != 0)
		throw SystemError("rdma_connect");
	const Event event = await("the outcome of connect");
	if (event.type == RDMA_CM_EVENT_REJECTED)
		return Exit::rejected;
	if (event.type != RDMA_CM_EVENT_ESTABLISHED || event.status != 0)
		return Exit::failed;
	return connected();
}

} // namespace

Exit run_client(const Options &options)
{
	return Client(options).run();
}

} // namespace rdmafirst
