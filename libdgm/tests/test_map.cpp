// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <dgm.h>

#include <cerrno>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace {

struct Map {
	Map() : map(dgm_map_new()) {}
	~Map() { dgm_map_free(map); }
	dgm_map *map;
};

TEST(Map, AdjacentIntervalsAreMergedIntoOneInterval)
{
	const Map m;
	EXPECT_EQ(dgm_map_add(m.map, 10, 10), 0);
	EXPECT_EQ(dgm_map_add(m.map, 30, 10), 0);
	EXPECT_FALSE(dgm_map_has(m.map, 10, 30));
	EXPECT_EQ(dgm_map_add(m.map, 20, 10), 0);
	EXPECT_TRUE(dgm_map_has(m.map, 10, 30));
	EXPECT_FALSE(dgm_map_has(m.map, 9, 2));
	EXPECT_FALSE(dgm_map_has(m.map, 39, 2));
	uint64_t offset = 0, length = 0;
	EXPECT_EQ(dgm_map_next(m.map, &offset, &length), 1);
	EXPECT_EQ(offset, 10u);
	EXPECT_EQ(length, 30u);
	offset = 40;
	EXPECT_EQ(dgm_map_next(m.map, &offset, &length), 0);
}

TEST(Map, AddingAnIntervalThatWrapsFailsWithEinval)
{
	const Map m;
	EXPECT_EQ(dgm_map_add(m.map, UINT64_MAX, 2), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(dgm_map_add(m.map, UINT64_MAX - 1, 1), 0);
	EXPECT_FALSE(dgm_map_has(m.map, UINT64_MAX, 2));
	EXPECT_EQ(dgm_map_bytes(m.map), 1u);
}

TEST(Map, AMapOfRandomIntervalsMatchesAPlainArray)
{
	std::mt19937 random(7);
	for (int round = 0; round < 300; round++) {
		const Map m;
		std::vector<bool> plain(200);
		for (int step = 0; step < 40; step++) {
			const uint64_t begin = random() % 180, length = random() % 20;
			ASSERT_EQ(dgm_map_add(m.map, begin, length), 0);
			for (uint64_t i = begin; i < begin + length; i++)
				plain[i] = true;
		}
		for (uint64_t i = 0; i < plain.size(); i++)
			ASSERT_EQ(dgm_map_has(m.map, i, 1), plain[i]) << i;
		ASSERT_EQ(dgm_map_bytes(m.map), static_cast<uint64_t>(std::count(plain.begin(), plain.end(), true)));
		uint64_t offset = 0, length = 0, covered = 0, behind = 0;
		for (bool first = true; dgm_map_next(m.map, &offset, &length); first = false) {
			ASSERT_TRUE(first || offset > behind) << "joined";
			covered += length;
			behind = offset + length;
			offset = behind;
		}
		ASSERT_EQ(covered, dgm_map_bytes(m.map));
	}
}

} // namespace
