// SPDX-License-Identifier: GPL-2.0
#include "foreign.h"

#include "endpoint.h"

#include <array>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rdmafirst {

ibv_context *open_device(const std::string &name)
{
	int count = 0;
	ibv_device **list = ibv_get_device_list(&count);
	ibv_context *context = nullptr;
	for (int i = 0; i < count; i++)
		if (name == ibv_get_device_name(list[i]))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return context;
}

namespace {

constexpr uid_t nobody = 65534;

struct Made {
	uint32_t number;
	int file;
};

// To the end of the process, and of whoever has the file
Made make_qp(const std::string &device)
{
	ibv_context *context = open_device(device);
	ibv_pd *pd = context ? ibv_alloc_pd(context) : nullptr;
	ibv_cq *cq = pd ? ibv_create_cq(context, 1, nullptr, nullptr, 0) : nullptr;
	ibv_qp_init_attr attr{};
	attr.send_cq = cq;
	attr.recv_cq = cq;
	attr.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
	attr.qp_type = IBV_QPT_RC;
	const ibv_qp *qp = cq ? ibv_create_qp(pd, &attr) : nullptr;
	if (!qp)
		throw SystemError("cannot create a queue pair on device " + device);
	return {qp->qp_num, context->cmd_fd};
}

// A number, with a file
struct Letter {
	alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
	uint32_t number = 0;
	iovec text{&number, sizeof(number)};
	msghdr header{};

	Letter()
	{
		header.msg_iov = &text;
		header.msg_iovlen = 1;
		header.msg_control = control.data();
		header.msg_controllen = control.size();
	}
};

void send_file(int socket, const Made &made)
{
	Letter letter;
	letter.number = made.number;
	cmsghdr *cmsg = CMSG_FIRSTHDR(&letter.header);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	std::memcpy(CMSG_DATA(cmsg), &made.file, sizeof(made.file));
	if (sendmsg(socket, &letter.header, 0) < 0)
		throw SystemError("sendmsg");
}

Made receive_file(int socket)
{
	Letter letter;
	int file = -1;
	if (recvmsg(socket, &letter.header, MSG_CMSG_CLOEXEC) != sizeof(letter.number))
		throw std::runtime_error("no queue pair number received from the creating process");
	const cmsghdr *cmsg = CMSG_FIRSTHDR(&letter.header);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS)
		throw std::runtime_error("no file descriptor received from the creating process");
	std::memcpy(&file, CMSG_DATA(cmsg), sizeof(file));
	return {letter.number, file};
}

// In a process of its own, which does not outlive us
template <typename Function> pid_t start(Function function)
{
	const pid_t pid = fork();
	if (pid < 0)
		throw SystemError("fork");
	if (pid > 0)
		return pid;
	try {
		function();
	} catch (const std::exception &error) {
		fmt::print(stderr, "rdmafirst: {}\n", error.what());
	}
	_exit(1);
}

std::array<int, 2> make_pair()
{
	std::array<int, 2> sockets{};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0)
		throw SystemError("socketpair");
	return sockets;
}

void become_nobody()
{
	if (setgroups(0, nullptr) != 0 || setresgid(nobody, nobody, nobody) != 0 || setresuid(nobody, nobody, nobody) != 0)
		throw SystemError("cannot change to the user nobody");
}

} // namespace

void OthersQp::made_by_nobody(const std::string &device)
{
	const auto [ours, theirs] = make_pair();
	holder_ = start([&device, theirs = theirs, ours = ours] {
		close(ours);
		become_nobody();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		send_file(theirs, make_qp(device));
		pause();
	});
	close(theirs);
	const Made made = receive_file(ours);
	close(ours);
	// Only they have it
	close(made.file);
	number_ = made.number;
}

void OthersQp::made_by_parent(const std::string &device)
{
	number_ = make_qp(device).number;
	const pid_t child = fork();
	if (child < 0)
		throw SystemError("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	signal(SIGTERM, SIG_DFL);
	int status = 0;
	waitpid(child, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(Exit::usage));
}

void OthersQp::made_by_sender(const std::string &device)
{
	const auto [ours, theirs] = make_pair();
	const pid_t sender = start([&device, theirs = theirs] {
		send_file(theirs, make_qp(device));
		_exit(0);
	});
	close(theirs);
	const Made made = receive_file(ours);
	close(ours);
	waitpid(sender, nullptr, 0);
	number_ = made.number;
	file_ = made.file;
}

OthersQp::OthersQp(const std::string &whose_and_device)
{
	if (whose_and_device.empty())
		return;
	const size_t colon = whose_and_device.find(':');
	const std::string whose = whose_and_device.substr(0, colon);
	const std::string device = colon == std::string::npos ? "" : whose_and_device.substr(colon + 1);
	if (whose == "nobody")
		made_by_nobody(device);
	else if (whose == "parent")
		made_by_parent(device);
	else if (whose == "sender")
		made_by_sender(device);
	else
		throw std::invalid_argument("expected nobody, parent or sender, not " + whose);
}

OthersQp::~OthersQp()
{
	if (holder_ > 0) {
		kill(holder_, SIGKILL);
		waitpid(holder_, nullptr, 0);
	}
	if (file_ >= 0)
		close(file_);
}

} // namespace rdmafirst
