// SPDX-License-Identifier: GPL-2.0
#include "allocator.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Two sessions with their setups, private data and frames */
#define SLOTS	8
#define PAGE	4096
#define ROOM	(2 * PAGE)	/* for one allocation */

struct slot {
	uint8_t *p;	/* NULL: free */
	size_t size;
};

static struct slot slots[SLOTS];
static unsigned int allocations;
static bool fail_next, failed;

static _Noreturn void violated(const char *claim)
{
	fprintf(stderr, "violated: %s\n", claim);
	abort();
}

static struct slot *find_slot(const void *p)
{
	for (struct slot *slot = slots; slot < slots + SLOTS; slot++)
		if (slot->p == p)
			return slot;
	return NULL;
}

#if __has_feature(address_sanitizer)

static uint8_t *take(const struct slot *slot, size_t size)
{
	(void)slot;
	return malloc(size);
}

static void give_back(const struct slot *slot)
{
	free(slot->p);
}

#else

/* Each slot has its room, and an inaccessible page behind it */
static uint8_t *rooms(void)
{
	static uint8_t *first;

	if (first)
		return first;
	first = mmap(NULL, SLOTS * (ROOM + PAGE), PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (first == MAP_FAILED)
		abort();
	for (int i = 0; i < SLOTS; i++)
		if (mprotect(first + i * (ROOM + PAGE), ROOM,
			     PROT_READ | PROT_WRITE))
			abort();
	return first;
}

static uint8_t *take(const struct slot *slot, size_t size)
{
	if (size > ROOM)
		violated("no allocation is this large");
	return memset(rooms() + (slot - slots) * (ROOM + PAGE) + ROOM - size,
		      0xa5, size);
}

static void give_back(const struct slot *slot)
{
	memset(slot->p, 0x6b, slot->size);
}

#endif

void *shim_allocate(size_t size)
{
	struct slot *slot = find_slot(NULL);

	if (fail_next) {
		fail_next = false;
		failed = true;
		return NULL;
	}
	if (!slot)
		violated("a session exceeds its number of allocations");
	slot->p = take(slot, size);
	slot->size = size;
	allocations++;
	return slot->p;
}

void shim_free(void *p)
{
	struct slot *slot = p ? find_slot(p) : NULL;

	if (!p)
		return;
	if (!slot)
		violated("freed memory was allocated");
	give_back(slot);
	slot->p = NULL;
	allocations--;
}

unsigned int shim_allocations(void)
{
	return allocations;
}

size_t shim_size(const void *p)
{
	const struct slot *slot = p ? find_slot(p) : NULL;

	return slot ? slot->size : 0;
}

void shim_fail_next(bool fail)
{
	fail_next = fail;
	failed = false;
}

bool shim_failed(void)
{
	return failed;
}
