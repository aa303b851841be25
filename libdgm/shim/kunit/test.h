/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * As much of KUnit as dg_wire_test.c, dg_track_test.c and dg_error_test.c use, so that the same cases run in user space, under
 * sanitizers, in less than a second. Each suite is a program; it prints "ok CASE" or "not ok CASE: PARAMETER".
 */
#ifndef DG_SHIM_KUNIT_H
#define DG_SHIM_KUNIT_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#define KUNIT_PARAM_DESC_SIZE 128
#define GFP_KERNEL 0

struct kunit {
	const void *param_value;
	jmp_buf leave;
	bool failed;
	void *memory[16];
	unsigned int blocks;
};

struct kunit_case {
	void (*run)(struct kunit *test);
	const char *name;
	const void *(*next)(const void *prev, char *desc);
};

struct kunit_suite {
	const char *name;
	const struct kunit_case *test_cases;
};

#define KUNIT_CASE(function) { function, #function, NULL }
#define KUNIT_CASE_PARAM(function, params) { function, #function, params }
#define KUNIT_ARRAY_PARAM(name, array, describe)						\
	static const void *name##_gen_params(const void *prev, char *desc)			\
	{											\
		const __typeof__((array)[0]) *next = prev ? (const __typeof__((array)[0]) *)prev + 1 : (array); \
		if (next == (array) + sizeof(array) / sizeof((array)[0]))			\
			return NULL;								\
		describe(next, desc);								\
		return next;									\
	}

#define strscpy(to, from, size) snprintf(to, size, "%s", from)
#define min(x, y) ({ __typeof__(x) dg_x = (x); __typeof__(y) dg_y = (y); dg_x < dg_y ? dg_x : dg_y; })
#define min_t(type, x, y) min((type)(x), (type)(y))
#define MODULE_DESCRIPTION(text) _Static_assert(sizeof(text), "text")
#define MODULE_LICENSE(text) _Static_assert(sizeof(text), "text")

struct rnd_state {
	u64 state;
};

static inline void prandom_seed_state(struct rnd_state *rnd, u64 seed)
{
	rnd->state = seed;
}

static inline u32 prandom_u32_state(struct rnd_state *rnd)
{
	rnd->state = rnd->state * 6364136223846793005u + 1442695040888963407u;
	return (u32)(rnd->state >> 32);
}

static inline void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	(void)gfp;
	if (test->blocks == sizeof(test->memory) / sizeof(test->memory[0]))
		abort();
	return test->memory[test->blocks++] = calloc(1, size);
}

#define DG_KUNIT(test, condition, leave_it)							\
	do {											\
		if (!(condition)) {								\
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition);		\
			(test)->failed = true;							\
			if (leave_it)								\
				longjmp((test)->leave, 1);					\
		}										\
	} while (0)
#define KUNIT_EXPECT_TRUE(test, c) DG_KUNIT(test, c, 0)
#define KUNIT_EXPECT_FALSE(test, c) DG_KUNIT(test, !(c), 0)
#define KUNIT_EXPECT_EQ(test, a, b) DG_KUNIT(test, (a) == (b), 0)
#define KUNIT_EXPECT_NE(test, a, b) DG_KUNIT(test, (a) != (b), 0)
#define KUNIT_EXPECT_NULL(test, p) DG_KUNIT(test, (p) == NULL, 0)
#define KUNIT_EXPECT_NOT_NULL(test, p) DG_KUNIT(test, (p) != NULL, 0)
#define KUNIT_EXPECT_STREQ(test, a, b) DG_KUNIT(test, strcmp(a, b) == 0, 0)
#define KUNIT_EXPECT_STRNEQ(test, a, b) DG_KUNIT(test, strcmp(a, b) != 0, 0)
#define KUNIT_ASSERT_TRUE(test, c) DG_KUNIT(test, c, 1)
#define KUNIT_ASSERT_FALSE(test, c) DG_KUNIT(test, !(c), 1)
#define KUNIT_ASSERT_EQ(test, a, b) DG_KUNIT(test, (a) == (b), 1)
#define KUNIT_ASSERT_LE(test, a, b) DG_KUNIT(test, (a) <= (b), 1)
#define KUNIT_ASSERT_LT(test, a, b) DG_KUNIT(test, (a) < (b), 1)
#define KUNIT_ASSERT_NOT_NULL(test, p) DG_KUNIT(test, (p) != NULL, 1)

/* Returns false if it failed */
static bool dg_kunit_run(const struct kunit_case *c, const void *param)
{
	struct kunit test = { .param_value = param };

	if (!setjmp(test.leave))
		c->run(&test);
	while (test.blocks)
		free(test.memory[--test.blocks]);
	return !test.failed;
}

static int dg_kunit_main(const struct kunit_suite *suite)
{
	int failed = 0;

	for (const struct kunit_case *c = suite->test_cases; c->run; c++) {
		char desc[KUNIT_PARAM_DESC_SIZE] = "";
		const void *param = c->next ? c->next(NULL, desc) : NULL;
		bool good = true;

		do {
			bool passed = dg_kunit_run(c, param);

			if (!passed)
				printf("not ok %s %s: %s\n", suite->name, c->name, desc);
			good &= passed;
			param = c->next ? c->next(param, desc) : NULL;
		} while (param);
		if (good)
			printf("ok %s %s\n", suite->name, c->name);
		failed |= !good;
	}
	return failed;
}

#define kunit_test_suite(suite) int main(void) { return dg_kunit_main(&suite); }

#endif
