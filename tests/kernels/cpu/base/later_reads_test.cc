#include "kernels/cpu/base/later_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hippodrome::cpu::later_reads_test {
namespace {

using Lines = std::vector<const char*>;

// Rows of which some lie far from the others, and columns with different distances.
LaterReads SomeReads(const std::vector<char>& memory, int64_t rows, int64_t columns) {
  LaterReads reads{.columns = columns};
  for (int64_t row = 0; row < rows; ++row) {
    reads.rows.push_back({&memory[static_cast<size_t>(row * 1000)], 64 * (1 + row % 2)});
  }
  return reads;
}

Lines InOrder(const LaterReads& reads) {
  Lines lines;
  for (int64_t column = 0; column < reads.columns; ++column) {
    for (const LaterReads::Row& row : reads.rows) lines.push_back(row.first + column * row.stride);
  }
  return lines;
}

TEST(LaterReadsTest, PartsAreAllLinesInOrder) {
  const std::vector<char> memory(8000);
  for (const int64_t rows : {0, 1, 7}) {
    const LaterReads reads = SomeReads(memory, rows, 5);
    for (const int64_t count : {1, 2, 3, 36, 50}) {
      Lines taken;
      for (int64_t index = 0; index < count; ++index) {
        LaterLines part(reads, index, count, 100);
        while (part.left() > 0) taken.push_back(part.Take());
      }
      EXPECT_EQ(taken, InOrder(reads)) << rows << " rows in " << count << " parts";
    }
  }
}

TEST(LaterReadsTest, AreAskedForEvenlyWithinTheSteps) {
  const std::vector<char> memory(8000);
  const LaterReads reads = SomeReads(memory, 7, 5);
  for (const int64_t steps : {35, 36, 100, 1000}) {
    LaterLines part(reads, 0, 1, steps);
    for (int64_t step = 1; step <= steps; ++step) {
      part.Step();
      EXPECT_EQ(part.left(), std::max<int64_t>(0, 35 - step / (steps / 35)))
          << step << "/" << steps;
    }
    EXPECT_EQ(part.left(), 0);
  }
}

TEST(LaterReadsTest, FewStepsLeaveSomeOut) {
  const std::vector<char> memory(8000);
  const LaterReads reads = SomeReads(memory, 7, 5);
  LaterLines part(reads, 0, 1, 10);
  for (int64_t step = 0; step < 10; ++step) part.Step();
  EXPECT_EQ(part.left(), 25);
}

TEST(LaterReadsTest, NoneIsNothing) {
  LaterLines none;
  for (int64_t step = 0; step < 10; ++step) none.Step();
  EXPECT_EQ(none.left(), 0);
}

}  // namespace
}  // namespace hippodrome::cpu::later_reads_test
