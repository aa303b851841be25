/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A ring of video frames with a map of what came. Each frame is one message into its place in the ring; a frame with
 * holes is shown all the same, and the map says which part of the picture is old.
 *
 *     frames show ADDRESS PORT FRAMES            # prints a line for each frame
 *     frames play ADDRESS PORT FRAMES
 */
#include <arpa/inet.h>
#include <dgm.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAME = 256 * 1024, RING = 4, ZONE = 0xf4a3e, KEY = 0xfeed };

static unsigned char ring[RING][FRAME];

static void play(dgm_endpoint *endpoint, struct sockaddr_in *peer, int frames)
{
	for (int number = 0; number < frames; number++) {
		memset(ring[0], number, FRAME);
		if (dgm_write(endpoint, (struct sockaddr *)peer, sizeof(*peer), ZONE, KEY, (uint64_t)(number % RING) * FRAME,
			      ring[0], FRAME, NULL) != 0)
			warn("frame %d", number);
		usleep(40000);
	}
}

static void show(dgm_endpoint *endpoint, int frames)
{
	struct dgm_zone_options options = { .number = ZONE, .qkey = KEY, .flags = DGM_PARTIAL };
	dgm_zone *zone = dgm_zone_open(endpoint, ring, sizeof(ring), &options);
	dgm_map *map = dgm_map_new();
	struct dgm_event event;
	int shown = 0;

	if (!zone || !map)
		err(1, "dgm_zone_open");
	dgm_allow_any(zone);
	puts("ready");
	fflush(stdout);
	while (shown < frames && dgm_poll(endpoint, &event, 1, 5000) == 1) {
		uint64_t offset = 0, length = 0;
		int parts = 0;

		if (event.type != DGM_RECORD)
			continue;
		dgm_map_add(map, event.offset, event.length);
		if (!(event.flags & DGM_END))
			continue;
		for (; dgm_map_next(map, &offset, &length); offset += length)
			parts++;
		/* Only octets that the map has are looked at */
		printf("frame %d at %llu: %llu of %u octets in %d parts, value %d\n", shown++,
		       (unsigned long long)event.message / FRAME, (unsigned long long)dgm_map_bytes(map), event.message_length,
		       parts, ((unsigned char *)ring)[event.offset]);
		dgm_map_free(map);
		map = dgm_map_new();
	}
	printf("%d frames\n", shown);
	dgm_map_free(map);
}

int main(int argc, char **argv)
{
	struct sockaddr_in local = { .sin_family = AF_INET }, peer = { .sin_family = AF_INET };
	int shows = argc == 5 && strcmp(argv[1], "show") == 0;
	dgm_endpoint *endpoint;

	if (argc != 5 || inet_pton(AF_INET, argv[2], &peer.sin_addr) != 1)
		errx(2, "usage: frames show|play ADDRESS PORT FRAMES");
	peer.sin_port = htons((uint16_t)atoi(argv[3]));
	endpoint = dgm_open(shows ? (struct sockaddr *)&peer : (struct sockaddr *)&local, sizeof(peer), NULL);
	if (!endpoint)
		err(1, "dgm_open");
	if (shows)
		show(endpoint, atoi(argv[4]));
	else
		play(endpoint, &peer, atoi(argv[4]));
	dgm_close(endpoint);
	return 0;
}
