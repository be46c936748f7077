#include "kernels/cpu/gemm/linear_amx.h"

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"
#include "kernels/cpu/gemm/epilogue.h"

namespace hippodrome::cpu {
namespace {

// Rows of a task, whose sums stay in the second-level cache, and the least that share the fetching
// of a panel.
constexpr int64_t kBlockRows = 256;
constexpr int64_t kMinBlockRows = 32;

// Tasks per thread, so that threads of unequal speed finish together.
constexpr int64_t kTasksPerThread = 4;

// Panels of a task, for all of which each slice of its rows is read once; more from the depth on at
// which its rows come from beyond the second-level cache.
constexpr int64_t kTaskPanels = 2;
constexpr int64_t kDeepTaskPanels = 4;
constexpr int64_t kDeepSteps = 64;

// Below this many multiplications waking a thread costs more than it saves.
constexpr int64_t kSerialProducts = 1 << 19;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Blocking {
  int64_t rows;
  int64_t panels;
};

// Rows and panels of a task: as many as leave work for all threads.
Blocking ChooseBlocking(int64_t threads, const AmxOperand& a, int64_t panels) {
  Blocking blocking = {kBlockRows, a.steps >= kDeepSteps ? kDeepTaskPanels : kTaskPanels};
  const auto few = [&] {
    const int64_t tasks = DivideUp(a.rows, blocking.rows) * DivideUp(panels, blocking.panels);
    return tasks < kTasksPerThread * threads;
  };
  while (few() && blocking.panels > 1) blocking.panels /= 2;
  while (few() && blocking.rows > kMinBlockRows) blocking.rows /= 2;
  // All alike.
  const int64_t rows = DivideUp(a.rows, DivideUp(a.rows, blocking.rows));
  blocking.rows = DivideUp(rows, kMinBlockRows) * kMinBlockRows;
  return blocking;
}

}  // namespace

void RoundToTiles(ThreadPool& pool, const Tensor& x, const AmxTiles& tiles) {
  const int64_t rows = DivideUp(x.rows, kAmxRows);
  ParallelRows(pool, rows, kAmxRows * x.cols / 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * kAmxRows; row < std::min(end * kAmxRows, x.rows); row += kAmxRows) {
      const int64_t count = std::min(kAmxRows, x.rows - row);
      RoundToAmxTiles(F32Row(x, row), x.stride, count, x.cols, tiles.at(row));
    }
  });
}

void MultiplyAmx(ThreadPool& pool, const AmxOperand& a, const PackedWeights& w,
                 const Epilogue& epilogue, const Tensor& y) {
  const int64_t panels = w.panels();
  const Blocking blocking = ChooseBlocking(pool.threads(), a, panels);
  const int64_t blocks = DivideUp(a.rows, blocking.rows);
  const int64_t groups = DivideUp(panels, blocking.panels);
  const auto finish = [&](const AmxSums& s) {
    FinishTile(epilogue, y, s.sums, s.row, s.rows, s.column, s.cols);
  };
  // The larger operand is read once, while the smaller one passes by.
  const bool rows_first = a.rows > w.out();
  const auto task = [&](int64_t index) {
    const AmxRegisters registers;
    const int64_t first = (rows_first ? index % groups : index / blocks) * blocking.panels;
    const int64_t begin = (rows_first ? index / groups : index % blocks) * blocking.rows;
    MultiplyAmxPanels(a, w, first, std::min(first + blocking.panels, panels), begin,
                      std::min(begin + blocking.rows, a.rows), finish);
  };
  const int64_t products = DivideUp(a.rows, kAmxRows) * a.steps * kAmxTile * panels * kPanelColumns;
  if (products < kSerialProducts) {
    for (int64_t i = 0; i < groups * blocks; ++i) task(i);
  } else {
    pool.RunNeighbours(groups * blocks, task);
  }
}

}  // namespace hippodrome::cpu
