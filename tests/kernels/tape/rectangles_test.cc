#include "kernels/tape/rectangles.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace hippodrome::rectangles_test {
namespace {

using Cells = std::set<std::pair<int64_t, int64_t>>;

Cells CellsOf(const Rectangle& r) {
  Cells cells;
  for (int64_t i = r.row; i < r.row + r.rows; ++i) {
    for (int64_t j = r.col; j < r.col + r.cols; ++j) cells.insert({i, j});
  }
  return cells;
}

TEST(RectanglesTest, NothingIsSetAtFirst) {
  const auto missing = Rectangles().Missing({1, 2, 3, 4});
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].area(), 12);
}

// Against a set of cells, after every one of many random changes.
TEST(RectanglesTest, AgreesWithASetOfCells) {
  std::minstd_rand random(1);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  const auto draw = [&] { return Rectangle{below(6), below(6), 1 + below(5), 1 + below(5)}; };
  Rectangles rectangles;
  Cells expected;
  for (int change = 0; change < 500; ++change) {
    const Rectangle r = draw();
    if (below(2) == 0) {
      rectangles.Add(r);
      expected.merge(CellsOf(r));
    } else {
      rectangles.Remove(r);
      for (const auto& cell : CellsOf(r)) expected.erase(cell);
    }
    const Rectangle asked = draw();
    Cells missing;
    size_t area = 0;
    for (const Rectangle& part : rectangles.Missing(asked)) {
      area += static_cast<size_t>(part.area());
      missing.merge(CellsOf(part));
    }
    EXPECT_EQ(area, missing.size()) << "the parts overlap";
    for (const auto& cell : CellsOf(asked)) {
      EXPECT_NE(missing.contains(cell), expected.contains(cell));
    }
  }
}

}  // namespace
}  // namespace hippodrome::rectangles_test
