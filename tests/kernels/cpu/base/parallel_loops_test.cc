#include "kernels/cpu/base/parallel_loops.h"

#include <gtest/gtest.h>

#include <vector>

namespace hippodrome::cpu::parallel_loops_test {
namespace {

TEST(ParallelRowsTest, CoversEveryRowOnce) {
  ThreadPool pool(3);
  for (int64_t rows : {0, 1, 2, 63, 1000}) {
    for (int64_t work : {0, 1, 100, 1 << 20}) {
      std::vector<int> runs(static_cast<size_t>(rows));
      ParallelRows(pool, rows, work, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) ++runs[static_cast<size_t>(row)];
      });
      EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(rows), 1));
    }
  }
}

TEST(ParallelRowsTest, GivesEachThreadTheSame) {
  ThreadPool pool(2);
  std::vector<int64_t> sizes(64, 0);
  // Work for three ranges.
  ParallelRows(pool, 64, kSerialWork / 24, [&](int64_t begin, int64_t end) {
    sizes[static_cast<size_t>(begin)] = end - begin;
  });
  for (int64_t row = 0; row < 64; ++row) {
    EXPECT_EQ(sizes[static_cast<size_t>(row)], row % 16 == 0 ? 16 : 0) << row;
  }
}

TEST(ParallelRowsTest, LittleWorkStaysOnTheCaller) {
  ThreadPool pool(3);
  int calls = 0;  // not atomic: a second thread would be a race
  ParallelRows(pool, 10, 100, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace hippodrome::cpu::parallel_loops_test
