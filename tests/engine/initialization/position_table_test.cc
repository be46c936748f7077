#include "engine/initialization/position_table.h"

#include <gtest/gtest.h>

namespace hippodrome::position_table_test {
namespace {

TEST(TilePositionsTest, RepeatsTheLearnedRows) {
  const std::vector<float> table = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(TilePositions(table, 2, 3), table);
  EXPECT_EQ(TilePositions(table, 2, 7),
            (std::vector<float>{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2}));
  EXPECT_EQ(TilePositions(table, 2, 1), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace hippodrome::position_table_test
