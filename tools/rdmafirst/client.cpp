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
	bool good(const Completion &done);
	void linger();
	void disconnect();

	const Options &options_;
	Clock::time_point deadline_;
	Channel channel_;
	Endpoint endpoint_;
	size_t due_ = 0; // sends and reads that have not completed
	bool received_ = false;
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

// Prints a completion; false if it is not as it should be.
bool Client::good(const Completion &done)
{
	if (done.status != IBV_WC_SUCCESS) {
		const char *kind = done.receive ? "receive" : done.read ? "read" : "send";
		say(fmt::format("{} failed: {}", kind, ibv_wc_status_str(done.status)));
		return false;
	}
	if (!done.receive) {
		say(done.read ? "read" : "sent");
		due_--;
		return true;
	}
	received_ = true;
	say(fmt::format("received {} {}", done.data.size(), done.data));
	return !options_.expect || *options_.expect == done.data;
}

// Established: sends and reads if asked to, waits for what is to be received.
Exit Client::exchange()
{
	for (const std::string &text : options_.send)
		endpoint_.post_send(text);
	due_ = options_.send.size();
	received_ = !options_.receive;
	if (options_.read) {
		if (!endpoint_.post_read()) {
			say("read refused");
			return Exit::failed;
		}
		due_++;
	}
	for (;;) {
		const bool done_before = due_ == 0 && received_;
		for (const Completion &done : endpoint_.completions()) {
			// the event that tells of the end may come behind the flushed receives
			if (!good(done) && !(options_.hold && done_before))
				return Exit::failed;
		}
		const bool all_done = due_ == 0 && received_;
		if (auto event = next_event(channel_.get())) {
			say(event->describe());
			for (const Completion &done : endpoint_.completions())
				good(done);
			return options_.hold && all_done ? Exit::ok : Exit::failed;
		}
		if (all_done && !options_.hold)
			return Exit::ok;
		const std::array endpoints{static_cast<const Endpoint *>(&endpoint_)};
		wait_readable(descriptors(channel_.get(), endpoints), deadline_,
			      due_ != 0 ? "the work to complete" : "a message");
	}
}

// One outcome is all there is to be told (of a connection that failed).
void Client::linger()
{
	const Clock::time_point until = Clock::now() + options_.linger;
	try {
		while (options_.linger.count() != 0) {
			wait_readable(descriptors(channel_.get(), {}), until, "nothing more");
			while (auto event = next_event(channel_.get()))
				say("further " + event->describe());
		}
	} catch (const DeadlinePassed &) {
		say("nothing further");
	}
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
	set_mpa_options(endpoint_.id(), options_.mpa);
	rdma_conn_param param = conn_param(options_);
	if (rdma_connect(endpoint_.id(), &param) != 0)
		throw SystemError("rdma_connect");
	const Event event = await("the outcome of connect");
	const bool established = event.type == RDMA_CM_EVENT_ESTABLISHED && event.status == 0;
	if (!established) {
		linger();
		return event.type == RDMA_CM_EVENT_REJECTED ? Exit::rejected : Exit::failed;
	}
	say(endpoint_.describe_qp());
	return connected();
}

} // namespace

Exit run_client(const Options &options)
{
	return Client(options).run();
}

} // namespace rdmafirst
