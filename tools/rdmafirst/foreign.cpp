// SPDX-License-Identifier: GPL-2.0
#include "foreign.h"

#include "endpoint.h"

#include <array>
#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rdmafirst {
namespace {

// Of the other process, until it is killed
void hold_qp(ibv_device *device, int out)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ibv_context *context = ibv_open_device(device);
	ibv_pd *pd = context ? ibv_alloc_pd(context) : nullptr;
	ibv_cq *cq = pd ? ibv_create_cq(context, 1, nullptr, nullptr, 0) : nullptr;
	ibv_qp_init_attr attr{};
	attr.send_cq = cq;
	attr.recv_cq = cq;
	attr.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
	attr.qp_type = IBV_QPT_RC;
	const ibv_qp *qp = cq ? ibv_create_qp(pd, &attr) : nullptr;
	if (qp && write(out, &qp->qp_num, sizeof(qp->qp_num)) == sizeof(qp->qp_num))
		pause();
	_exit(1);
}

} // namespace

ForeignQp::ForeignQp(ibv_device *device)
{
	std::array<int, 2> fds{};
	if (pipe(fds.data()) != 0)
		throw SystemError("pipe");
	pid_ = fork();
	if (pid_ == 0) {
		close(fds[0]);
		hold_qp(device, fds[1]);
	}
	close(fds[1]);
	const bool got = pid_ > 0 && read(fds[0], &number_, sizeof(number_)) == sizeof(number_);
	close(fds[0]);
	if (got)
		return;
	if (pid_ > 0)
		waitpid(pid_, nullptr, 0);
	throw std::runtime_error("the other process has no queue pair");
}

ForeignQp::~ForeignQp()
{
	kill(pid_, SIGKILL);
	waitpid(pid_, nullptr, 0);
}

} // namespace rdmafirst
