/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Usage: exs-files ADDRESS PORT [NAME]
 *
 * Without a name: serves the files of the current directory. With one: fetches that file to standard output.
 * The server's processor does not touch the data: the client reads them out of the page cache.
 */
#include <exs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static exs_qh_t queue;
static char buffer[1 << 20];

static struct exs_event wait_for(exs_op_t op)
{
	struct exs_event event = { .error = -1 };

	if (op > 0)
		while (exs_qdequeue(queue, &event, 1, -1) != 1 || event.op != op)
			;
	return event;
}

/* One request: a name in a message. The answer: the file, and the end. */
static void serve(exs_fd_t peer, exs_mh_t memory)
{
	struct exs_event event = wait_for(exs_recv(peer, memory, buffer, 255, 0, queue, NULL));
	struct stat status;
	int file = -1;

	buffer[event.length] = '\0';
	if (event.error == 0 && !strchr(buffer, '/'))
		file = open(buffer, O_RDONLY | O_NONBLOCK);
	if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
		wait_for(exs_sendfile(peer, file, 0, (size_t)status.st_size, queue, NULL));
	if (file >= 0)
		close(file);
	wait_for(exs_close(peer, queue, NULL));
}

static int fetch(exs_fd_t peer, exs_mh_t memory, const char *name)
{
	struct exs_event event;

	snprintf(buffer, 256, "%s", name);
	event = wait_for(exs_send(peer, memory, buffer, strlen(buffer), 0, queue, NULL));
	for (;;) {
		event = wait_for(exs_recv(peer, memory, buffer, sizeof(buffer), 0, queue, NULL));
		if (event.error != 0 || event.length == 0)
			return event.error;
		fwrite(buffer, 1, event.length, stdout);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	const struct sockaddr *name = (const struct sockaddr *)&address;
	exs_mh_t memory;
	exs_fd_t fd;
	int error;

	if (argc < 3 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1 || exs_init(EXS_VERSION) != 0)
		return 2;
	address.sin_port = htons((uint16_t)atoi(argv[2]));
	queue = exs_qcreate();
	memory = exs_mregister(buffer, sizeof(buffer), EXS_MEM_SEND | EXS_MEM_RECV);
	fd = exs_socket(AF_INET, SOCK_STREAM, EXS_PROTO_ANY);
	if (argc > 3) {
		error = wait_for(exs_connect(fd, name, sizeof(address), queue, NULL)).error;
		if (error != 0) {
			fprintf(stderr, "cannot connect to %s port %s: %s\n", argv[1], argv[2], strerror(error));
			return 1;
		}
		error = fetch(fd, memory, argv[3]);
		if (error != 0)
			fprintf(stderr, "cannot fetch %s: %s\n", argv[3], strerror(error));
		return error != 0;
	}
	/* one client at a time: a silent one must not keep the others out; what is accepted has the option, too */
	exs_fcntl(fd, EXS_SET, EXS_IDLE_MS, 10000U);
	if (exs_bind(fd, name, sizeof(address)) != 0 || exs_listen(fd, 16) != 0) {
		fprintf(stderr, "cannot listen on %s port %s: %s\n", argv[1], argv[2], strerror(errno));
		return 1;
	}
	puts("listening");
	fflush(stdout);
	for (;;)
		serve(wait_for(exs_accept(fd, queue, NULL)).accepted, memory);
}
