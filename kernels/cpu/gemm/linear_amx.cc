#include "kernels/cpu/gemm/linear_amx.h"

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"
#include "kernels/cpu/gemm/epilogue.h"

namespace hippodrome::cpu {
namespace {

// Rows of a block. More of them would lie on more pages than prefetching of the output follows:
// with 128 rows of 4 KiB a product takes three times as long.
constexpr int64_t kBlockRows = 32;

// Weights that one task takes, so that they stay in the second-level cache for all blocks of rows.
constexpr int64_t kCachedBytes = 1 << 19;

// Tasks per thread, so that threads of unequal speed finish together.
constexpr int64_t kTasksPerThread = 4;

// From this depth on a task's operands come from beyond the second-level cache, each value once for
// a whole block of sums, which stays in it: gradients of weights, whose depth is the batch.
constexpr int64_t kDeepSteps = 64;
constexpr int64_t kDeepRows = 256;
constexpr int64_t kDeepPanels = 4;

// Below this many multiplications waking a thread costs more than it saves.
constexpr int64_t kSerialProducts = 1 << 19;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Blocking {
  int64_t rows;
  int64_t panels;
};

// Rows and panels of a task, of a product whose operands stay in the cache.
Blocking ShallowBlocking(int64_t threads, int64_t rows, const PackedWeights& w) {
  const int64_t fair = w.panels() * DivideUp(rows, kBlockRows) / (kTasksPerThread * threads);
  const int64_t cached = kCachedBytes / PackedWeights::PanelBytes(w.in(), w.dtype());
  return {kBlockRows, std::clamp<int64_t>(std::min(fair, cached), 1, w.panels())};
}

// The same of a deep one: as large as leaves work for all threads.
Blocking DeepBlocking(int64_t threads, int64_t rows, const PackedWeights& w) {
  Blocking blocking = {kDeepRows, kDeepPanels};
  const auto tasks = [&] {
    return DivideUp(rows, blocking.rows) * DivideUp(w.panels(), blocking.panels);
  };
  while (tasks() < 2 * threads && blocking.rows > kBlockRows) {
    blocking.rows /= 2;
    if (tasks() < 2 * threads && blocking.panels > 1) blocking.panels /= 2;
  }
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
  const bool deep = a.steps >= kDeepSteps;
  const Blocking blocking =
      deep ? DeepBlocking(pool.threads(), a.rows, w) : ShallowBlocking(pool.threads(), a.rows, w);
  const int64_t panels = w.panels();
  const int64_t blocks = DivideUp(a.rows, blocking.rows);
  const int64_t groups = DivideUp(panels, blocking.panels);
  const auto finish = [&](const AmxSums& s) {
    FinishTile(epilogue, y, s.sums, s.row, s.rows, s.column, s.cols);
  };
  const auto task = [&](int64_t index) {
    const AmxRegisters registers;
    const int64_t group = index / blocks;
    const int64_t begin = index % blocks * blocking.rows;
    const int64_t end = std::min(begin + blocking.rows, a.rows);
    const int64_t last = panels * (group + 1) / groups;
    const int64_t together = deep ? blocking.panels : 1;
    for (int64_t p = panels * group / groups; p < last; p += together) {
      MultiplyAmxPanels(a, w, p, std::min(p + together, last), begin, end, finish);
    }
  };
  const int64_t products = DivideUp(a.rows, kAmxRows) * a.steps * kAmxTile * panels * kPanelColumns;
  if (products < kSerialProducts) {
    for (int64_t i = 0; i < groups * blocks; ++i) task(i);
  } else {
    RunNeighbours(pool, groups * blocks, task);
  }
}

}  // namespace hippodrome::cpu
