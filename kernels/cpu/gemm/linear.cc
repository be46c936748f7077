#include "kernels/cpu/gemm/linear.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"
#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/gemm/linear_amx.h"
#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/microkernel_amx.h"
#include "kernels/cpu/gemm/product_inputs.h"

namespace hippodrome::cpu {
namespace {

// Rows of a panel (of 256 bytes) multiplied by all rows of a block before the next ones. With many
// rows a slice stays in the second-level cache and the partial sums are seldom reloaded; with few,
// when weights stream from memory, it fits the first level, so that fetching keeps ahead evenly.
constexpr int64_t kSliceDepth = 1024;
constexpr int64_t kStreamedDepth = 64;

// Tiles from which on a block has many, and so many that six of them share the fetching: more
// evenly than four, which takes 2 % less time on two cores of a Zen 5.
constexpr int64_t kManyTiles = 4;
constexpr int64_t kSharingTiles = 6;

// Rows whose partial sums one thread keeps, and the least that share the fetching of a panel.
constexpr int64_t kMaxBlockRows = 32 * kMicrokernelRows;
constexpr int64_t kMinBlockRows = 8 * kMicrokernelRows;

// Tasks per thread, so that threads of unequal speed finish together.
constexpr int64_t kTasksPerThread = 4;

// Rows from which on matrix registers multiply bytes faster than dot products, with the same bits.
constexpr int64_t kInt8AmxLeastRows = 16;

// Below this many multiplications waking a thread costs more than it saves.
constexpr int64_t kSerialProducts = 1 << 15;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t multiple) { return DivideUp(a, multiple) * multiple; }

// Bytes of a unit of depth of a panel, and how often it has the 256 that slices are measured in.
template <typename W>
inline constexpr int64_t kUnitBytes = kPanelColumns * 4;
template <DType kWeights>
inline constexpr int64_t kUnitBytes<QuantizedPanel<kWeights>> = sizeof(QuantizedPanel<kWeights>);
template <typename W>
inline constexpr int64_t kUnitRows = kUnitBytes<W> / (kPanelColumns * 4);
// Steps of FetchAhead for a unit.
template <typename W>
inline constexpr int64_t kUnitSteps = 1;
template <DType kWeights>
inline constexpr int64_t kUnitSteps<QuantizedPanel<kWeights>> = QuantizedPanel<kWeights>::kSteps;

// A microkernel, and what it takes.
template <typename A, typename W>
struct TileKernel {
  void (*run)(const MicrokernelArguments<A, W>&);
  int64_t rows = kMicrokernelRows;  // of a tile, at most
  int64_t row_step = 1;             // fewer rows than a multiple of this take as long as that many
  bool matrix_registers = false;    // whether it needs AmxRegisters; then it fetches nothing
};

// One product: where everything lies, in the types of its kernel.
template <typename A, typename W>
struct Product {
  TileKernel<A, W> tile;
  const A* a;
  int64_t a_stride;
  int64_t per_depth;  // elements of `a` per unit of depth
  const PackedWeights& w;
  const Epilogue& epilogue;
  Tensor y;
  const LaterReads& later;
};

// How the depth is cut, and which tiles of a slice fetch how many lines of the next one per k, with
// which pause: a panel's row is four lines, so together they ask for all of it once.
struct SlicePlan {
  // Of a slice's bytes what each of them asks for.
  int64_t Share(int64_t bytes) const {
    const int64_t share = bytes * lines / 4;
    return pause == 0 ? share : share - share / pause;
  }

  int64_t depth;
  int64_t fetching_tiles;
  int lines;
  int pause = 0;
};

// Whether a lone tile had better not ask for what comes next: AMD's processors up to Zen 4 fetch a
// stream that they see, and are disturbed by both. Of what a plain read of the same bytes reaches
// on two cores of a Zen 4, at 47 GB/s and at 32: int4 0.93 and 0.99 against 0.75 and 0.91, int8
// 0.83 and 0.93 against 0.71 and 0.90. On a Zen 5, at 65 GB/s and at 39: int4 0.81 and 0.96 against
// 0.98 and 0.99, int8 0.83 and 0.90 against 0.92 and 0.98.
bool StreamsAlone() {
#if defined(__x86_64__)
  // Compilers of today's distributions cannot ask for a Zen 5 by name.
  static const bool until_zen4 =
      __builtin_cpu_is("amd") != 0 && __builtin_cpu_supports("avx512vp2intersect") == 0;
  return until_zen4;
#else
  return false;
#endif
}

template <typename A, typename W>
SlicePlan PlanSlices(const TileKernel<A, W>& tile, int64_t tiles) {
  if (tile.matrix_registers) return {kSliceDepth, 0, 0};
  if (tiles == 1 && StreamsAlone()) return {kSliceDepth, 0, 0};
  if (tiles == 1) return {kStreamedDepth, 1, 4};
  if (tiles < kManyTiles) return {kStreamedDepth, 2, 2};
  if (tiles < kSharingTiles) return {kSliceDepth, 4, 1};
  return {kSliceDepth, kSharingTiles, 1, 3};
}

// Columns of y for a block of rows, from sums [panel][rows][kPanelColumns].
struct Output {
  const Epilogue& epilogue;
  const Tensor& y;
  int64_t begin;   // row
  int64_t column;  // the first
  int64_t cols;
  float* sums;
  int64_t panel_sums;  // floats from a panel's to the next one's

  // Asks for what Finish() will touch.
  void Fetch(int64_t row, int64_t rows) const {
    FetchTile(epilogue, y, begin + row, rows, column, cols);
  }

  // Whether y is to have the sums of a panel as they are, so that a kernel can write them there: a
  // product of 64 rows takes 2 % less time so.
  bool TakesSums() const {
    return y.dtype == DType::kF32 && cols == kPanelColumns && epilogue.bias.data == nullptr &&
           epilogue.activation == Epilogue::Activation::kNone && epilogue.gate.data == nullptr &&
           epilogue.residual.data == nullptr;
  }
  float* Place(int64_t row) const { return F32Row(y, begin + row) + column; }

  // Writes rows whose sums are complete; counted from `begin`.
  void Finish(int64_t row, int64_t rows) const {
    float* const of_rows = sums + row * kPanelColumns;
    if (y.dtype == DType::kI8) return FinishGroups(of_rows, begin + row, rows);
    FinishTile(epilogue, y, of_rows, begin + row, rows, column, cols);
  }

 private:
  void FinishGroups(float* of_rows, int64_t row, int64_t rows) const {
    alignas(64) float values[kInt8AmxRows * kInt8Group];
    for (int64_t c = 0; c < cols; c += kPanelColumns, of_rows += panel_sums) {
      EpilogueArguments corner = EpilogueOfTile(epilogue, y, of_rows, row, rows, column + c,
                                                std::min(kPanelColumns, cols - c));
      corner.y = values + c;
      corner.y_stride = kInt8Group;
      ApplyEpilogue(corner);
    }
    for (int64_t r = 0; r < rows; ++r) {
      RoundToInt8(values + r * kInt8Group, cols, GroupAt(y, row + r, column / kInt8Group));
    }
  }
};

// One slice of the depth for the rows of a block.
template <typename A, typename W>
struct Slice {
  TileKernel<A, W> tile;
  const A* a;
  int64_t a_stride;
  const W* panel;
  int64_t depth;
  bool accumulate;
  const char* next;
  LaterLines* later;
};

// `output`, if not null: for what the slice completes.
template <typename A, typename W>
void MultiplySlice(const Slice<A, W>& slice, const SlicePlan& plan, int64_t rows, float* sums,
                   const Output* output) {
  const int64_t tiles = DivideUp(rows, slice.tile.rows);
  // Tiles of nearly equal height: a last tile of one row would cost as much as a full one.
  const auto first_of = [&](int64_t t) {
    return std::min(RoundUp(rows * t / tiles, slice.tile.row_step), rows);
  };
  const int64_t share = plan.Share(slice.depth * kUnitBytes<W>);
  const auto ahead_of = [&](int64_t t) {
    if (t >= plan.fetching_tiles) return LinesAhead{.later = slice.later};
    return LinesAhead{slice.next + t * share, plan.lines, plan.pause, slice.later};
  };
  constexpr bool kQuantised = !std::is_same_v<W, float> && !std::is_same_v<W, BF16>;
  const bool in_place =
      !kQuantised && output != nullptr && !slice.accumulate && output->TakesSums();
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = first_of(t);
    const int64_t height = first_of(t + 1) - first;
    if (output != nullptr) output->Fetch(first, height);
    slice.tile.run({.a = slice.a + first * slice.a_stride,
                    .a_stride = slice.a_stride,
                    .panel = slice.panel,
                    .depth = slice.depth,
                    .rows = static_cast<int>(height),
                    .accumulate = slice.accumulate,
                    .sums = in_place ? output->Place(first) : sums + first * kPanelColumns,
                    .ahead = ahead_of(t),
                    .sums_stride = in_place ? output->y.stride : kPanelColumns});
    if (output != nullptr && !in_place) output->Finish(first, height);
  }
}

// With many tiles, bf16 weights are expanded once for all of them. A tile then adds the same
// products in the same order as one that expands for itself.
void MultiplyExpanded(const Slice<float, BF16>& slice, int64_t rows, float* sums,
                      const Output* output) {
  float* panel = ThreadScratch<float>(ScratchUse::kLinearPanel, 2 * slice.depth * kPanelColumns);
  ExpandPairs(slice.panel, slice.depth, panel);
  const Slice<float, float> expanded = {.tile = {MicrokernelF32},
                                        .a = slice.a,
                                        .a_stride = slice.a_stride,
                                        .panel = panel,
                                        .depth = 2 * slice.depth,
                                        .accumulate = slice.accumulate,
                                        .next = slice.next,
                                        .later = slice.later};
  MultiplySlice(expanded, {.depth = slice.depth, .fetching_tiles = 2, .lines = 1}, rows, sums,
                output);
}

// A panel by rows [begin, end) of x, and the panel that will be wanted afterwards.
struct Block {
  int64_t panel;
  int64_t next_panel;
  int64_t begin;
  int64_t end;
  LaterLines* later;
};

// To sums [rows][kPanelColumns]. `output`, if not null: for what the block completes.
template <typename A, typename W>
void MultiplyBlock(const Product<A, W>& product, const Block& block, float* sums,
                   const Output* output) {
  constexpr bool kExpands = std::is_same_v<A, float> && std::is_same_v<W, BF16>;
  const int64_t rows = block.end - block.begin;
  const int64_t tiles = DivideUp(rows, product.tile.rows);
  const int64_t depth = product.w.depth();
  SlicePlan plan = PlanSlices(product.tile, tiles);
  plan.depth /= kUnitRows<W>;
  const bool expand = kExpands && tiles >= kManyTiles;
  if (expand) plan.depth /= 2;
  const char* weights = product.w.panel(block.panel);
  const int64_t slices = DivideUp(depth, plan.depth);
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t k = depth * i / slices;
    const int64_t slice_depth = depth * (i + 1) / slices - k;
    const bool last = i + 1 == slices;
    const Slice<A, W> slice = {
        .tile = product.tile,
        .a = product.a + block.begin * product.a_stride + k * product.per_depth,
        .a_stride = product.a_stride,
        .panel = reinterpret_cast<const W*>(weights + k * kUnitBytes<W>),
        .depth = slice_depth,
        .accumulate = k > 0,
        .next =
            last ? product.w.panel(block.next_panel) : weights + (k + slice_depth) * kUnitBytes<W>,
        .later = block.later};
    const Output* const completed = last ? output : nullptr;
    if constexpr (kExpands) {
      if (expand) {
        MultiplyExpanded(slice, rows, sums, completed);
        continue;
      }
    }
    MultiplySlice(slice, plan, rows, sums, completed);
  }
}

// The number of blocks that the rows are cut into.
int64_t CountBlocks(int64_t rows, int64_t panels, int64_t threads) {
  const int64_t wanted = DivideUp(kTasksPerThread * threads, panels);
  return std::max(DivideUp(rows, kMaxBlockRows), std::min(wanted, DivideUp(rows, kMinBlockRows)));
}

// Panels whose columns are written together: those of a group where y is rounded by groups.
int64_t PanelsTogether(const Tensor& y) {
  return y.dtype == DType::kI8 ? kInt8Group / kPanelColumns : 1;
}

// Panels [first, last), whose columns are written together, by rows [begin, end) of x; `after` will
// be wanted then, and `later` later.
template <typename A, typename W>
void MultiplyPanels(const Product<A, W>& product, int64_t first, int64_t last, int64_t after,
                    int64_t begin, int64_t end, LaterLines later) {
  const int64_t panel_sums = (end - begin) * kPanelColumns;
  float* const sums = ThreadScratch<float>(ScratchUse::kLinearSums, (last - first) * panel_sums);
  const int64_t column = first * kPanelColumns;
  const Output output = {.epilogue = product.epilogue,
                         .y = product.y,
                         .begin = begin,
                         .column = column,
                         .cols = std::min((last - first) * kPanelColumns, product.y.cols - column),
                         .sums = sums,
                         .panel_sums = panel_sums};
  for (int64_t panel = first; panel < last; ++panel) {
    const bool completes = panel + 1 == last;
    MultiplyBlock(product, {panel, completes ? after : panel + 1, begin, end, &later},
                  sums + (panel - first) * panel_sums, completes ? &output : nullptr);
  }
}

template <typename A, typename W>
void Multiply(ThreadPool& pool, const Product<A, W>& product) {
  const int64_t rows = product.y.rows;
  const int64_t panels = product.w.panels();
  const int64_t together = PanelsTogether(product.y);
  const int64_t units = DivideUp(panels, together);
  const int64_t blocks = CountBlocks(rows, units, pool.threads());
  // Whole tiles, but for the last block.
  const auto begin_of = [&](int64_t block) {
    return std::min(RoundUp(rows * block / blocks, product.tile.rows), rows);
  };
  const auto task = [&](int64_t index) {
    const int64_t block = index % blocks;
    const int64_t first = index / blocks * together;
    const int64_t after = std::min((index + 1) / blocks * together, panels - 1);
    std::optional<AmxRegisters> registers;
    if (product.tile.matrix_registers) registers.emplace();
    const int64_t last = std::min(first + together, panels);
    const int64_t begin = begin_of(block), end = begin_of(block + 1);
    const int64_t tiles = DivideUp(end - begin, product.tile.rows);
    LaterLines later;
    if (tiles >= kManyTiles) {
      later = {product.later, index, units * blocks,
               (last - first) * tiles * product.w.depth() * kUnitSteps<W>};
    }
    MultiplyPanels(product, first, last, after, begin, end, later);
  };
  if (rows * panels * product.w.in() * kPanelColumns < kSerialProducts) {
    for (int64_t i = 0; i < units * blocks; ++i) task(i);
  } else {
    pool.RunNeighbours(units * blocks, task);
  }
}

// x in the form that a kernel reads, rows of `stride` elements; kAmxRows more may be read behind
// them, and are unspecified.
template <typename A>
const A* RoundRows(ThreadPool& pool, const Tensor& x, int64_t stride,
                   void (*round)(const float*, int64_t, A*)) {
  A* rounded = ThreadScratch<A>(ScratchUse::kLinearInput, (x.rows + kAmxRows) * stride);
  ParallelRows(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      round(F32Row(x, row), x.cols, rounded + row * stride);
    }
  });
  return rounded;
}

template <typename Panel>
void LinearQuantized(ThreadPool& pool, const Tensor& x, const PackedWeights& w,
                     const Epilogue& epilogue, const Tensor& y, DotKernel kernel,
                     const LaterReads& later) {
  const int64_t groups = w.depth();
  const DotKernel chosen = ChosenKernel(kernel, Panel::kType);
  if (chosen == DotKernel::kPlain) {
    using Group = RoundedGroup<int16_t, Panel>;
    const Group* a = RoundRows<Group>(pool, x, groups, RoundToInt16<Panel>);
    Multiply<Group, Panel>(
        pool, {{MicrokernelQuantizedPlain<Panel>}, a, groups, 1, w, epilogue, y, later});
    return;
  }
  using Group = RoundedGroup<int8_t, Panel>;
  TileKernel<Group, Panel> tile = {MicrokernelQuantizedDot<Panel>};
  const Group* a = nullptr;
  if constexpr (Panel::kType == DType::kI8) {
    if (chosen == DotKernel::kAmx && x.rows >= kInt8AmxLeastRows) {
      tile = {MicrokernelInt8Amx, kInt8AmxRows, kAmxRows, true};
    }
    if (x.dtype == DType::kI8) a = GroupAt(x, 0, 0);
  }
  if (a == nullptr) a = RoundRows<Group>(pool, x, groups, RoundToInt8<Panel>);
  Multiply<Group, Panel>(pool, {tile, a, groups, 1, w, epilogue, y, later});
}

void LinearBF16(ThreadPool& pool, const Tensor& x, const PackedWeights& w, const Epilogue& epilogue,
                const Tensor& y, DotKernel kernel, const LaterReads& later) {
  if (kernel == DotKernel::kPlain) {
    const int64_t stride = 2 * w.depth();
    const float* a = RoundRows<float>(pool, x, stride, RoundToBF16Plain);
    return Multiply<float, BF16>(pool,
                                 {{MicrokernelBF16Plain}, a, stride, 2, w, epilogue, y, later});
  }
  const bool rounded = x.dtype == DType::kBF16;
  const int64_t stride = rounded ? x.stride : InputStride(x.cols);
  const BF16* a = rounded ? BF16Row(x, 0) : RoundRows<BF16>(pool, x, stride, RoundToSteps);
  if (kernel == DotKernel::kAmx) {
    return MultiplyAmx(pool, AmxRowsOperand(a, stride, x.rows, x.cols), w, epilogue, y);
  }
  Multiply<BF16, BF16>(pool, {{MicrokernelBF16Dot}, a, stride, 2, w, epilogue, y, later});
}

}  // namespace

DotKernel ChosenKernel(DotKernel kernel, DType dtype) {
  if (kernel != DotKernel::kBest) return kernel;
  if (dtype == DType::kI8 && HaveInt8Amx()) return DotKernel::kAmx;
  if (IsQuantized(dtype)) return HaveInt8Dot() ? DotKernel::kDot : DotKernel::kPlain;
  if (HaveAmx()) return DotKernel::kAmx;
  return FastBF16Dot() ? DotKernel::kDot : DotKernel::kPlain;
}

void Linear(ThreadPool& pool, Tensor x, const PackedWeights& w, const Epilogue& epilogue, Tensor y,
            DotKernel kernel, const LaterReads& later) {
  assert(x.cols == w.in() && y.cols == w.out() && x.rows == y.rows);
  switch (w.dtype()) {
    case DType::kF32:
      return Multiply<float, float>(
          pool, {{MicrokernelF32}, F32Row(x, 0), x.stride, 1, w, epilogue, y, later});
    case DType::kI8:
      return LinearQuantized<Int8Panel>(pool, x, w, epilogue, y, kernel, later);
    case DType::kI4:
      return LinearQuantized<Int4Panel>(pool, x, w, epilogue, y, kernel, later);
    default:
      return LinearBF16(pool, x, w, epilogue, y, ChosenKernel(kernel), later);
  }
}

}  // namespace hippodrome::cpu
