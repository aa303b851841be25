// SPDX-License-Identifier: GPL-2.0
// mpabench: nanoseconds for a frame parsed, a frame built, a connection negotiated, by the kernel's
// own frame.c and negotiate.c in user space. Each result is checked before it is timed.
#include "kernel.hpp"

extern "C" {
#include "negotiate.h"
}

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

constexpr iw_mpa_caps siw_caps = {
	.max_ird = 128,
	.max_ord = 128,
	.rtr_send = IW_MPA_RTR_ALL,
	.rtr_recv = IW_MPA_RTR_ALL,
	.llp = RDMA_MPA_LLP_TCP,
	.pow2_depths = true,
	.tx_markers = false,
	.rx_markers = false,
	.rtr_recv_one = false,
	.rtr_offload = false,
	.no_crc = false,
	.no_connect_ms = false,
	.fastopen = true,
	.large = true,
	.streams = false,
};

void demand(bool claim)
{
	if (!claim)
		std::abort();
}

struct Wire {
	explicit Wire(size_t pdata_len) : pdata(pdata_len, 0x5a)
	{
		const iw_mpa_local local = {&siw_caps, &iw_mpa_default_policy, 8, 8};
		iw_mpa_msg request;
		demand(iw_mpa_make_request(&local, &request) == 0);
		frame = {};
		frame.kind = IW_MPA_REQUEST;
		frame.rev = 2;
		frame.enhanced = request.enhanced;
		frame.enh = request.enh;
		frame.pdata = pdata.data();
		frame.pdata_len = static_cast<u16>(pdata.size());
		const int built = iw_mpa_frame_build(&frame, RDMA_MPA_DIALECT_RFC6581, bytes.data(), bytes.size());
		demand(built == static_cast<int>(IW_MPA_HDR_LEN + 4 + pdata_len));
		length = static_cast<size_t>(built);
	}

	std::vector<u8> pdata;
	iw_mpa_frame frame;
	std::array<u8, IW_MPA_FRAME_MAX> bytes{};
	size_t length = 0;
};

void parse(benchmark::State &state)
{
	const Wire wire(static_cast<size_t>(state.range(0)));
	iw_mpa_frame frame;
	size_t need;

	demand(iw_mpa_frame_parse(IW_MPA_REQUEST, RDMA_MPA_DIALECT_RFC6581, wire.bytes.data(), wire.length, &frame, &need) ==
		       IW_MPA_FRAME_COMPLETE &&
	       frame.pdata_len == wire.pdata.size());
	for (auto _ : state) {
		benchmark::DoNotOptimize(iw_mpa_frame_parse(IW_MPA_REQUEST, RDMA_MPA_DIALECT_RFC6581, wire.bytes.data(),
							    wire.length, &frame, &need));
		benchmark::ClobberMemory();
	}
}
BENCHMARK(parse)->Arg(0)->Arg(508);

// The cost of a slow peer, which sends each byte by itself
void parse_bytewise(benchmark::State &state)
{
	const Wire wire(static_cast<size_t>(state.range(0)));
	iw_mpa_frame frame;
	size_t need;

	for (auto _ : state) {
		for (size_t length = 1; length <= wire.length; length++) {
			benchmark::DoNotOptimize(iw_mpa_frame_parse(IW_MPA_REQUEST, RDMA_MPA_DIALECT_RFC6581, wire.bytes.data(),
								    length, &frame, &need));
			benchmark::ClobberMemory();
		}
	}
}
BENCHMARK(parse_bytewise)->Arg(0)->Arg(508);

void build(benchmark::State &state)
{
	const Wire wire(static_cast<size_t>(state.range(0)));
	std::array<u8, IW_MPA_FRAME_MAX> out{};

	for (auto _ : state) {
		benchmark::DoNotOptimize(
			iw_mpa_frame_build(&wire.frame, RDMA_MPA_DIALECT_RFC6581, out.data(), out.size()));
		benchmark::ClobberMemory();
	}
	demand(std::memcmp(out.data(), wire.bytes.data(), wire.length) == 0);
}
BENCHMARK(build)->Arg(0)->Arg(508);

// Request, the responder's decision, the initiator's decision
void negotiate(benchmark::State &state)
{
	const iw_mpa_local initiator = {&siw_caps, &iw_mpa_default_policy, 8, 8};
	const iw_mpa_local responder = {&siw_caps, &iw_mpa_default_policy, 16, 4};
	iw_mpa_msg request;
	iw_mpa_decision theirs, ours;

	for (auto _ : state) {
		iw_mpa_make_request(&initiator, &request);
		iw_mpa_negotiate_responder(&responder, &request, &theirs);
		iw_mpa_negotiate_initiator(&initiator, &request, &theirs.reply, &ours);
		benchmark::DoNotOptimize(ours);
		benchmark::ClobberMemory();
	}
	demand(theirs.verdict == IW_MPA_GO && ours.verdict == IW_MPA_GO && ours.rtr != 0);
}
BENCHMARK(negotiate);

} // namespace

BENCHMARK_MAIN();
