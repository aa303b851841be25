/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A table of latest values, by multicast. The publisher writes rows into the zone of all readers at once and does not
 * know how many there are. A reader looks at its own memory whenever it likes; the validity map shows which rows it has.
 *
 *     table read GROUP PORT INTERFACE-ADDRESS SECONDS        # as often as wanted, on any host
 *     table publish GROUP PORT INTERFACE-ADDRESS SECONDS
 */
#include <arpa/inet.h>
#include <dgm.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 16, ZONE = 0x7ab1e, KEY = 0xfeed };

/* One datagram writes a row. While it is written, first and last may differ. */
struct row {
	uint32_t first;
	char text[56];
	uint32_t last;
};

static void publish(dgm_endpoint *endpoint, struct sockaddr_in *group, int seconds)
{
	for (uint32_t turn = 1; turn <= (uint32_t)seconds * 10; turn++) {
		struct row row = { .first = turn, .last = turn };
		uint32_t index = turn % ROWS;

		snprintf(row.text, sizeof(row.text), "row %u, turn %u", index, turn);
		if (dgm_write(endpoint, (struct sockaddr *)group, sizeof(*group), ZONE, KEY, index * sizeof(row), &row,
			      sizeof(row), NULL) != 0)
			warn("dgm_write");
		usleep(100000);
	}
}

static void read_rows(dgm_endpoint *endpoint, struct sockaddr_in *group, struct in_addr interface, int seconds)
{
	static struct row table[ROWS];
	struct ip_mreq request = { .imr_multiaddr = group->sin_addr, .imr_interface = interface };
	struct dgm_zone_options options = {
		.number = ZONE, .qkey = KEY, .flags = DGM_NO_RECORD, .block = sizeof(struct row)
	};
	dgm_zone *zone = dgm_zone_open(endpoint, table, sizeof(table), &options);
	int rows = 0;

	if (!zone)
		err(1, "dgm_zone_open");
	dgm_allow_any(zone); /* name the publisher where others can send to the group */
	if (setsockopt(dgm_socket(endpoint), IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) != 0)
		err(1, "join");
	puts("joined");
	fflush(stdout);
	sleep((unsigned int)seconds);
	for (int i = 0; i < ROWS; i++) {
		struct row row = table[i];

		if (dgm_zone_valid(zone, (size_t)i) && row.first == row.last) {
			printf("%s\n", row.text);
			rows++;
		}
	}
	printf("%d rows\n", rows);
}

int main(int argc, char **argv)
{
	struct sockaddr_in local = { .sin_family = AF_INET }, group = { .sin_family = AF_INET };
	struct dgm_options options;
	struct in_addr interface;
	dgm_endpoint *endpoint;
	int on = 1;

	if (argc != 6 || inet_pton(AF_INET, argv[2], &group.sin_addr) != 1 || inet_pton(AF_INET, argv[4], &interface) != 1)
		errx(2, "usage: table read|publish GROUP PORT INTERFACE-ADDRESS SECONDS");
	group.sin_port = htons((uint16_t)atoi(argv[3]));
	dgm_defaults(&options);
	if (strcmp(argv[1], "read") == 0) {
		/* Several readers of a host share the port, so the program binds the socket itself */
		options.socket = socket(AF_INET, SOCK_DGRAM, 0);
		local.sin_port = group.sin_port;
		setsockopt(options.socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(options.socket, (struct sockaddr *)&local, sizeof(local)) != 0)
			err(1, "bind");
	}
	endpoint = dgm_open((struct sockaddr *)&local, sizeof(local), &options);
	if (!endpoint)
		err(1, "dgm_open");
	setsockopt(dgm_socket(endpoint), IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof(interface));
	if (strcmp(argv[1], "read") == 0)
		read_rows(endpoint, &group, interface, atoi(argv[5]));
	else
		publish(endpoint, &group, atoi(argv[5]));
	dgm_close(endpoint);
	return 0;
}
