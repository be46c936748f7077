#include "tools/device_model/modelled_backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "kernels/cuda/conv/long_conv_method.h"
#include "kernels/cuda/h3/scan_splits.h"
#include "kernels/device_error.h"
#include "kernels/quantized_group.h"

namespace hippodrome {
namespace {

// Seconds that a launch adds beside its own. On a stream it waits for the host. In a graph a kernel
// of ours starts while the one before ends; a product of the library, which takes all of a
// multiprocessor's shared memory, cannot. A copy from the host; and until the host has what it
// waited for. Fitted to decode and prefill of the 125M and 1.3B models on an H100, before kernels
// of a step were dependent launches.
constexpr double kStreamGap = 2e-6;
constexpr double kGraphGap = -1.5e-6;
constexpr double kLibraryGraphGap = 1e-6;
constexpr double kUpload = 4e-6;
constexpr double kDownload = 15e-6;

// As kernels/cuda cuts its work into blocks.
constexpr int64_t kStepRows = 8;       // Linear(): more rows are the library's
constexpr int64_t kStepWarps = 8;      // of a block, and
constexpr int64_t kNormingBlocks = 4;  // blocks of a multiprocessor that normalise for themselves
constexpr int64_t kRoundedInside = 8;  // of kI8; LinearQuantized() rounds more rows before
constexpr int64_t kQuantizedStepRows = 16;  // and more are in blocks of
constexpr int64_t kQuantizedRows = 32;
constexpr int64_t kQuantizedColumns = 16;
constexpr int64_t kQuantizedFewRows = 64;  // and more than these in others, of
constexpr int64_t kQuantizedBlockColumns = 64;
constexpr int64_t kRoundingWarps = 8;
constexpr int64_t kNormColumns = 512;   // of a warp
constexpr int64_t kNormWarps = 32;      // of a multiprocessor
constexpr int64_t kScanChannels = 16;   // of a block
constexpr int64_t kScanTokens = 16;     // computed together
constexpr int64_t kAheadSlots = 32;     // states of as many look ahead
constexpr int64_t kAheadChannels = 32;  // of a block
constexpr int64_t kAheadSequences = 8;  // of a block
constexpr int64_t kStepChannels = 16;   // of a block that does not look ahead
constexpr int64_t kQueries = 128;       // of a tile of attention
constexpr int64_t kKeys = 64;
constexpr int64_t kPartTokens = 256;  // of a step of attention, at least
constexpr int64_t kMostParts = 32;

constexpr int64_t kSumsBytes = 24 << 20;  // of a product before its epilogue
constexpr int64_t kSumsRows = 256;
constexpr int64_t kFinishColumns = 1024;     // of a block
constexpr int64_t kShortestTransform = 512;  // of LongConv(); and the longest that is counted
constexpr int64_t kLongestTransform = 8192;
constexpr int64_t kToeplitzTimes = 128;  // of a block, and
constexpr int64_t kToeplitzDepth = 64;
constexpr int64_t kToeplitzChannels = 64;

// What Device::Expect() keeps, and what a block of PrefetchShare() asks for at most.
constexpr int64_t kMostAhead = 24 << 20;
constexpr int64_t kBlockAhead = 384 << 10;

constexpr int64_t kActivation = sizeof(BF16);
constexpr int64_t kFloat = sizeof(float);

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t Bytes(Tensor x) { return x.rows * x.cols * static_cast<int64_t>(SizeOf(x.dtype)); }

struct Matrix final : LinearWeights {
  Matrix(int64_t out_columns, int64_t in_columns, DType weights)
      : rows(out_columns), cols(in_columns), dtype(weights) {}
  int64_t out() const override { return rows; }
  int64_t in() const override { return cols; }
  int64_t row_bytes() const {
    const int64_t scales = IsQuantized(dtype) ? QuantizedGroups(cols, dtype) * kActivation : 0;
    return RowBytes(dtype, cols) + scales;
  }
  int64_t bytes() const override { return rows * row_bytes(); }
  int64_t rows, cols;
  DType dtype;
};

struct Layer final : H3Weights {
  explicit Layer(int64_t channels) : d(channels) {}
  // Of each channel the taps, and of 32 modes A and C.
  int64_t bytes() const override { return d * (64 * kFloat + 32 * 4 * kFloat); }
  int64_t d;
};

// Of an H3 layer with 64 taps and head_dim 1. Bytes as kernels/cuda/h3/h3_state.cu has them,
// but for a number for 32 channels.
struct Slots final : RecurrentState {
  Slots(int64_t channels, int64_t count) : d(channels), slot_count(count) {}
  bool looks_ahead() const { return slot_count >= kAheadSlots; }
  int64_t ring() const { return d * 64 * kActivation; }
  int64_t modes() const { return d * 32 * 2 * kFloat; }
  int64_t ahead() const { return looks_ahead() ? kScanTokens * d * (2 * kFloat + kActivation) : 0; }
  int64_t slots() const override { return slot_count; }
  int64_t bytes_per_slot() const override { return ring() + modes() + ahead(); }
  int64_t bytes_per_step() const override {
    const int64_t settled = ring() + ring() / 64 + 2 * modes();
    return looks_ahead() ? (settled + ahead()) / kScanTokens + ahead() / 2 : settled;
  }
  std::vector<StateArray> arrays() const override { return H3StateArrays(d, 1, 64); }
  int64_t d, slot_count;
};

struct Pages final : KeyValuePages {
  Pages(int64_t page_count, int64_t tokens, int64_t width)
      : count(page_count), tokens_of_page(tokens), d(width) {}
  int64_t pages() const override { return count; }
  int64_t page_tokens() const override { return tokens_of_page; }
  int64_t bytes_per_page() const override { return tokens_of_page * 2 * d * kActivation; }
  int64_t count, tokens_of_page, d;
};

struct ModelledGraph final : Graph {};

// An address that nobody may read or write, so that a model without memory is found out.
OwnedTensor Reserve(int64_t rows, int64_t cols, DType dtype) {
  const size_t bytes = std::max<size_t>(1, static_cast<size_t>(rows * cols) * SizeOf(dtype));
  void* const memory =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw DeviceError("model: no addresses for a tensor");
  return {{memory, dtype, rows, cols, cols},
          std::shared_ptr<void>(memory, [bytes](void* p) { munmap(p, bytes); })};
}

[[noreturn]] void NotCounted(const char* operation) {
  throw DeviceError(std::string("model: ") + operation +
                    " is not counted: predictions are of hybrid H3 and BiGS models with weights of "
                    "bf16, int8 or int4");
}

// Tiles of `times` by `depth` that a causal sequence of `tokens` tokens after `start` others
// visits.
int64_t CausalTiles(int64_t start, int64_t tokens, int64_t times, int64_t depth) {
  int64_t tiles = 0;
  for (int64_t first = 0; first < tokens; first += times) {
    tiles += DivideUp(start + std::min(first + times, tokens), depth);
  }
  return tiles;
}

// As CUDA's Linear(): what the library's products cannot do behind them has a launch of its own.
bool IsLibraryEpilogue(const Epilogue& epilogue) {
  const bool gelu = epilogue.activation == Epilogue::Activation::kGeluTanh;
  return epilogue.gate.data == nullptr && (epilogue.activation == Epilogue::Activation::kNone ||
                                           (gelu && epilogue.residual.data == nullptr));
}

struct Convolution final : LongConvWeights {
  explicit Convolution(int64_t most) : longest_tokens(most) {}
  int64_t longest() const override { return longest_tokens; }
  int64_t bytes() const override { return longest_tokens * kFloat; }
  int64_t longest_tokens;
};

std::span<const int32_t> Values(Tensor indices) {
  return {static_cast<const int32_t*>(indices.data), static_cast<size_t>(indices.cols)};
}

}  // namespace

void ModelledBackend::Add(double seconds, std::string_view bound_by) {
  seconds_ += seconds;
  seconds_by_bound_[std::string(bound_by)] += seconds;
}

void ModelledBackend::Take(std::string_view kernel, const LaunchCounts& counts) {
  const LaunchTime time = TimeOf(counts, rates_);
  const bool ours = counts.library_flops == 0;
  unused_dram_ = time.seconds - kLaunchStart - counts.dram_bytes / rates_.dram_bytes;
  // A product of the library does not let the next kernel start before it ends.
  const double early = ours && follows_ours_ ? rates_.early_start : 0;
  follows_ours_ = ours;
  const double in_graph = ours ? kGraphGap - early : kLibraryGraphGap;
  const double gap = replays_ ? in_graph : kStreamGap;
  Add(time.seconds + std::min(gap, 0.0),
      std::string(kernel) + " (" + std::string(time.bound_by) + ")");
  if (gap > 0) Add(gap, "launches");
}

void ModelledBackend::Launch(std::string_view kernel, int64_t units, int64_t blocks,
                             int64_t dram_bytes) {
  Launch(UnitsOf(kernel), units, blocks, dram_bytes);
}

void ModelledBackend::Launch(const KernelUnits& kernel, int64_t units, int64_t blocks,
                             int64_t dram_bytes) {
  ModelledLaunches& launched = launches_[std::string(kernel.kernel)];
  ++launched.launches;
  launched.blocks += static_cast<double>(blocks);
  Take(kernel.kernel, CountsOf(kernel, static_cast<double>(units), static_cast<double>(blocks),
                               static_cast<double>(dram_bytes)));
}

PrefillShape ModelledBackend::prefill_shape() const { return {.grid = 2048, .rows = 16384}; }

int64_t ModelledBackend::StepRows(int64_t rows) const {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
}

OwnedTensor ModelledBackend::NewTensor(int64_t rows, int64_t cols) {
  return Reserve(rows, cols, DType::kF32);
}

OwnedTensor ModelledBackend::NewActivations(int64_t rows, int64_t cols, DType weights) {
  if (weights == DType::kF32) NotCounted("a product with weights of f32");
  return Reserve(rows, cols, DType::kBF16);
}

OwnedTensor ModelledBackend::NewIndices(int64_t rows, int64_t cols) {
  auto values = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(rows * cols));
  int32_t* const data = values->data();
  return {{data, DType::kI32, rows, cols, cols}, std::move(values)};
}

void ModelledBackend::Upload(std::span<const float>, Tensor) { Add(kUpload, "copies of indices"); }

void ModelledBackend::UploadIndices(std::span<const int32_t> values, Tensor dst) {
  auto* const data = static_cast<int32_t*>(dst.data);
  for (int64_t row = 0; row < dst.rows; ++row) {
    const auto from =
        values.subspan(static_cast<size_t>(row * dst.cols), static_cast<size_t>(dst.cols));
    std::ranges::copy(from, data + row * dst.stride);
  }
  Add(kUpload, "copies of indices");
}

void ModelledBackend::Download(Tensor, std::span<float> values) {
  std::ranges::fill(values, 0.0f);
  Add(kDownload, "copies of indices");
}

void ModelledBackend::DownloadIndices(Tensor, std::span<int32_t> values) {
  std::ranges::fill(values, 0);
  Add(kDownload, "copies of indices");
}

std::unique_ptr<LinearWeights> ModelledBackend::PackLinear(std::span<const HostMatrix> parts,
                                                           DType dtype) {
  if (dtype == DType::kF32) return nullptr;
  const auto rows =
      std::accumulate(parts.begin(), parts.end(), int64_t{0},
                      [](int64_t sum, const HostMatrix& part) { return sum + part.rows; });
  return std::make_unique<Matrix>(rows, parts.front().cols, dtype);
}

std::unique_ptr<H3Weights> ModelledBackend::PrepareH3(const H3Parameters& parameters, DType) {
  if (parameters.head_dim != 1 || parameters.d_state != 64) {
    NotCounted("an H3 layer of another shape than d_state 64 and head_dim 1");
  }
  return std::make_unique<Layer>(parameters.d_model);
}

std::unique_ptr<RecurrentState> ModelledBackend::NewH3State(const H3Weights& weights, int64_t slots,
                                                            DType) {
  return std::make_unique<Slots>(static_cast<const Layer&>(weights).d, slots);
}

std::unique_ptr<KeyValuePages> ModelledBackend::NewKeyValuePages(const AttentionShape& shape,
                                                                 int64_t pages, int64_t page_tokens,
                                                                 DType) {
  return std::make_unique<Pages>(pages, page_tokens, shape.heads * shape.head_dim);
}

void ModelledBackend::ResetSlot(RecurrentState&, int64_t) { Add(3 * kStreamGap, "launches"); }

void ModelledBackend::CopySlot(RecurrentState& state, int64_t, int64_t) {
  Take("copy", {.dram_bytes = 2.0 * static_cast<double>(state.bytes_per_slot())});
}

void ModelledBackend::CopyPage(KeyValuePages& pages, int32_t, int32_t) {
  Take("copy", {.dram_bytes = 2.0 * static_cast<double>(pages.bytes_per_page())});
}

void ModelledBackend::Embedding(const LinearWeights& table, Tensor, const AddedRows& types,
                                const AddedRows& positions, Tensor y) {
  const int64_t added = (types.table.data != nullptr) + (positions.table.data != nullptr);
  Launch("embedding", y.rows * y.cols, y.rows,
         y.rows * (static_cast<const Matrix&>(table).row_bytes() + added * table.in() * kFloat) +
             Bytes(y));
}

void ModelledBackend::LayerNorm(Tensor x, Tensor, Tensor, double, Tensor y) {
  const int64_t warps = DivideUp(x.cols, kNormColumns);
  const int64_t places = kNormWarps / warps * rates_.multiprocessors;
  KernelUnits kernel = UnitsOf("layer_norm");
  kernel.warps = static_cast<int>(warps);
  kernel.resident = static_cast<int>(kNormWarps / warps);
  const int64_t blocks = std::min(x.rows, places);
  Launch(kernel, x.rows * x.cols, blocks, Bytes(x) + Bytes(y));
  AskAhead(blocks);
}

// Devices before sm_90 have no such requests.
void ModelledBackend::AskAhead(int64_t blocks) {
  const int64_t most = rates_.early_start > 0 ? std::min(kMostAhead, blocks * kBlockAhead) : 0;
  asked_ = std::min(std::exchange(expected_, 0), most);
}

// DRAM is free until the product's blocks run.
double ModelledBackend::TakeAhead() {
  const double gap = replays_ ? kLibraryGraphGap : kStreamGap;
  return std::min(static_cast<double>(std::exchange(asked_, 0)),
                  (unused_dram_ + kLaunchStart + gap) * rates_.dram_bytes);
}

void ModelledBackend::Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
  const int64_t residual = epilogue.residual.data != nullptr ? Bytes(y) : 0;
  const int64_t bytes = Bytes(x) + w.bytes() + Bytes(y) + residual;
  const DType weights = static_cast<const Matrix&>(w).dtype;
  expected_ = 0;
  const bool quantized = IsQuantized(weights);
  if (!quantized && x.rows > kStepRows) return LibraryProduct(x, w, epilogue, y, bytes);
  asked_ = 0;
  if (quantized) return QuantizedProduct(x, w, weights, bytes);
  Launch("linear_step", w.in() * w.out(), StepBlocks(w.out()), bytes);
}

void ModelledBackend::LayerNormLinear(Tensor x, const NormParameters& norm, Tensor u,
                                      const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
  const bool inside = static_cast<const Matrix&>(w).dtype == DType::kBF16 &&
                      y.dtype == DType::kBF16 &&
                      x.rows * DivideUp(x.cols, kNormColumns) <= kStepWarps &&
                      StepBlocks(w.out()) <= kNormingBlocks * rates_.multiprocessors;
  if (!inside) return Backend::LayerNormLinear(x, norm, u, w, epilogue, y);
  Launch("layer_norm_linear_step", w.in() * w.out(), StepBlocks(w.out()),
         Bytes(x) + 2 * x.cols * kFloat + w.bytes() + Bytes(y));
}

// Blocks of products of few rows: as wide as leaves two for every multiprocessor, up to 4 tiles.
int64_t ModelledBackend::StepBlocks(int64_t columns) const {
  const auto tiles = static_cast<uint64_t>(columns / 8 / (2 * rates_.multiprocessors));
  return DivideUp(columns,
                  8 * std::clamp<int64_t>(static_cast<int64_t>(std::bit_floor(tiles)), 1, 4));
}

void ModelledBackend::QuantizedProduct(Tensor x, const LinearWeights& w, DType weights,
                                       int64_t bytes) {
  const std::string kernel = std::string("linear_quantized ") + WeightsName(weights);
  const int64_t values = w.in() * w.out();
  if (weights == DType::kI8 && x.rows <= kRoundedInside) {
    return Launch(kernel + ", 8 rows", values, StepBlocks(w.out()), bytes);
  }
  const int64_t rounded = x.rows * x.cols;
  Launch("round_inputs", rounded, DivideUp(x.rows * DivideUp(x.cols, kInt8Group), kRoundingWarps),
         Bytes(x) + rounded);
  if (x.rows <= kQuantizedStepRows) return Launch(kernel, values, StepBlocks(w.out()), bytes);
  const int64_t block_rows = DivideUp(x.rows, weights == DType::kI8 ? 128 : 64);
  const int64_t blocks = block_rows * DivideUp(w.out(), kQuantizedBlockColumns);
  if (x.rows <= kQuantizedFewRows || 2 * blocks < rates_.multiprocessors) {
    const int64_t row_tiles = DivideUp(x.rows, kQuantizedRows);
    return Launch(kernel + ", 32 rows", row_tiles * values,
                  row_tiles * DivideUp(w.out(), kQuantizedColumns), bytes);
  }
  Launch(std::string("linear_quantized_rows ") + WeightsName(weights), block_rows * values, blocks,
         bytes);
}

void ModelledBackend::LibraryProduct(Tensor x, const LinearWeights& w, const Epilogue& epilogue,
                                     Tensor y, int64_t bytes) {
  const auto weights = static_cast<double>(w.in() * w.out());
  const auto product = [&](int64_t rows, double moved) {
    Take("library product", {.dram_bytes = moved - TakeAhead(),
                             .library_flops = 2 * static_cast<double>(rows) * weights});
  };
  if (IsLibraryEpilogue(epilogue)) return product(x.rows, static_cast<double>(bytes));
  const int64_t most = std::max(kSumsBytes / (y.cols * kFloat * kSumsRows), int64_t{1}) * kSumsRows;
  for (int64_t begin = 0; begin < x.rows; begin += most) {
    const int64_t rows = std::min(most, x.rows - begin);
    product(rows, static_cast<double>(Bytes(x.Rows(begin, rows)) + w.bytes()));
    const int64_t gates = epilogue.gate.data != nullptr ? 2 : 1;
    Launch("linear_finish", rows * y.cols, rows * DivideUp(y.cols, kFinishColumns),
           gates * Bytes(y.Rows(begin, rows)));
  }
}

void ModelledBackend::LongConv(const LongConvWeights&, Tensor u, int64_t sequences, Direction,
                               Tensor y) {
  const int64_t tokens = u.rows / sequences;
  const auto points = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::max(tokens, kShortestTransform))));
  const int64_t bytes = Bytes(u) + Bytes(y);
  const bool transforms = points <= kLongestTransform &&
                          cuda::FasterLongConv(tokens, u.dtype) == cuda::LongConvMethod::kFft;
  if (!transforms) {
    const int64_t groups = DivideUp(u.cols, kToeplitzChannels) * sequences;
    return Launch("long_conv_toeplitz",
                  CausalTiles(0, tokens, kToeplitzTimes, kToeplitzDepth) * groups,
                  DivideUp(tokens, kToeplitzTimes) * groups, bytes);
  }
  const int64_t of_a_block = std::min<int64_t>(16, 16384 / points);
  Launch("long_conv_fft " + std::to_string(points), u.cols * sequences,
         DivideUp(u.cols, of_a_block) * sequences, bytes);
}

void ModelledBackend::MeanPool(Tensor x, Tensor, Tensor y) {
  Take("mean_pool", {.dram_bytes = static_cast<double>(Bytes(x) + Bytes(y))});
}

// As Device::CopyToScratch() does: once for all layers.
void ModelledBackend::UploadParts(const SequenceParts& parts) {
  const auto bytes = std::as_bytes(parts.parts);
  if (std::ranges::equal(bytes, parts_)) return;
  parts_.assign(bytes.begin(), bytes.end());
  Add(kUpload, "copies of indices");
}

void ModelledBackend::H3Sequence(const H3Weights&, Tensor qkv, RecurrentState& state,
                                 const SequenceParts& parts, Tensor o) {
  const auto& slots = static_cast<const Slots&>(state);
  const auto count = std::ssize(parts.parts);
  UploadParts(parts);
  if (slots.looks_ahead()) {
    Launch("h3_settle", count * slots.d, DivideUp(slots.d, kAheadChannels) * count, 0);
  }
  const int64_t groups = DivideUp(slots.d, kScanChannels);
  const int64_t splits = cuda::ScanSplits(parts.parts, groups, rates_.multiprocessors);
  Launch("h3_scan", o.rows * slots.d, groups * splits,
         Bytes(qkv) + Bytes(o) + count * (slots.ring() + slots.modes()));
  for (size_t i = 0; i < parts.captures.size(); ++i) CopySlot(state, 0, 0);
}

void ModelledBackend::H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state, Tensor,
                             Tensor, Tensor o) {
  const auto& slots = static_cast<const Slots&>(state);
  const int64_t bytes = weights.bytes() + o.rows * slots.bytes_per_step() + Bytes(qkv) + Bytes(o);
  if (slots.looks_ahead()) {
    const int64_t blocks = DivideUp(slots.d, kAheadChannels) * DivideUp(o.rows, kAheadSequences);
    Launch("h3_step ahead", o.rows * slots.d, blocks, bytes);
    return AskAhead(blocks);
  }
  Launch("h3_step", o.rows * slots.d, DivideUp(slots.d, kStepChannels) * o.rows, bytes);
}

void ModelledBackend::AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor,
                                        KeyValuePages&, Tensor, const SequenceParts& parts,
                                        Tensor o) {
  const int64_t d = o.cols;
  UploadParts(parts);
  Launch("attention_store", o.rows * d, o.rows, 2 * 2 * o.rows * d * kActivation);
  int64_t tiles = 0;
  int64_t blocks = 0;
  for (const SequencePart& part : parts.parts) {
    tiles += CausalTiles(part.start, part.tokens, kQueries, kKeys);
    blocks += DivideUp(part.tokens, kQueries);
  }
  Launch("attention_sequence", tiles * d, blocks * shape.heads, Bytes(qkv) + Bytes(o));
}

void ModelledBackend::AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor,
                                    KeyValuePages& pages, Tensor page_tables, Tensor positions,
                                    Tensor o) {
  const int64_t page = pages.page_tokens();
  const int64_t part_pages =
      std::max(DivideUp(kPartTokens, page), DivideUp(page_tables.cols, kMostParts));
  const int64_t parts = DivideUp(page_tables.cols, part_pages);
  int64_t keys = 0;
  for (const int32_t position : Values(positions)) keys += position + 1;
  const int64_t d = o.cols;
  Launch("attention_step", keys * d, o.rows * shape.heads * parts,
         2 * keys * d * kActivation + Bytes(qkv) + Bytes(o));
  if (parts == 1) return;
  Launch("attention_combine", o.rows * d * parts, o.rows * shape.heads,
         o.rows * d * parts * kFloat + Bytes(o));
  AskAhead(o.rows * shape.heads);
}

void ModelledBackend::GatherRows(Tensor, Tensor, Tensor y) {
  Launch("gather_rows", y.rows * y.cols, y.rows, y.rows * y.cols * kFloat + Bytes(y));
}

void ModelledBackend::Sample(Tensor logits, int64_t vocab, Tensor rows, const LogitAdjustments&,
                             Tensor) {
  SamplingRow first;  // stands for all; whatever it keeps is counted as top_p
  std::memcpy(&first, rows.data, sizeof(first));
  Launch(first.parameters.temperature == 0 ? "sample greedy" : "sample", logits.rows * vocab,
         logits.rows, logits.rows * vocab * kFloat);
}

void ModelledBackend::Replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work) {
  replays_ = graph != nullptr;
  follows_ours_ = false;
  work();
  replays_ = false;
  if (graph == nullptr) graph = std::make_unique<ModelledGraph>();
}

std::unique_ptr<LongConvWeights> ModelledBackend::PrepareLongConv(const LongConvParameters&,
                                                                  int64_t longest, DType) {
  return std::make_unique<Convolution>(longest);
}
std::unique_ptr<SsmWeights> ModelledBackend::PrepareSsm(const LongConvParameters&, DType) {
  NotCounted("an SSM of another kind");
}
std::unique_ptr<RecurrentState> ModelledBackend::NewSsmState(const SsmWeights&, int64_t) {
  NotCounted("an SSM of another kind");
}
std::unique_ptr<RecurrentState> ModelledBackend::NewLinearAttentionState(
    const LinearAttentionShape&, int64_t) {
  NotCounted("linear attention");
}
int64_t ModelledBackend::ExportSlot(const RecurrentState&, int64_t, int64_t,
                                    std::span<const std::span<float>>) {
  NotCounted("an export of states");
}
void ModelledBackend::ImportSlot(RecurrentState&, int64_t, int64_t,
                                 std::span<const std::span<const float>>) {
  NotCounted("an import of states");
}
void ModelledBackend::ExportRows(const KeyValuePages&, std::span<const int32_t>, int64_t, int64_t,
                                 std::span<float>, std::span<float>) {
  NotCounted("an export of keys and values");
}
void ModelledBackend::ImportRows(KeyValuePages&, std::span<const int32_t>, int64_t, int64_t,
                                 std::span<const float>, std::span<const float>) {
  NotCounted("an import of keys and values");
}
void ModelledBackend::Activate(Tensor, const Epilogue&, Tensor) { NotCounted("Activate"); }
void ModelledBackend::SsmSequence(const SsmWeights&, Tensor, RecurrentState&, const SequenceParts&,
                                  Tensor) {
  NotCounted("an SSM of another kind");
}
void ModelledBackend::SsmStep(const SsmWeights&, Tensor, RecurrentState&, Tensor, Tensor) {
  NotCounted("an SSM of another kind");
}
void ModelledBackend::LinearAttentionSequence(const LinearAttentionShape&, Tensor, RecurrentState&,
                                              const SequenceParts&, Tensor) {
  NotCounted("linear attention");
}
void ModelledBackend::LinearAttentionStep(const LinearAttentionShape&, Tensor, RecurrentState&,
                                          Tensor, Tensor) {
  NotCounted("linear attention");
}
void ModelledBackend::BidirectionalAttention(const AttentionShape&, Tensor, Tensor, Tensor) {
  NotCounted("bidirectional attention");
}
void ModelledBackend::LogProbabilities(Tensor, int64_t, Tensor, Tensor, Tensor) {
  NotCounted("LogProbabilities");
}

namespace {

class ModelledYardsticks final : public DeviceYardsticks {
 public:
  explicit ModelledYardsticks(const DeviceRates& rates) : rates_(rates) {}

  std::string device() const override { return std::string(rates_.title); }
  double CopySeconds(int64_t bytes) override {
    return 2 * static_cast<double>(bytes) / rates_.dram_bytes;
  }
  std::optional<double> GatedConvSeconds(Convolution convolution, int64_t sequences,
                                         int64_t channels, int64_t points) override {
    const std::string name = "gated_conv " + std::to_string(points);
    const auto units = AllKernelUnits();
    const auto found = std::ranges::find(units, name, &KernelUnits::kernel);
    if (convolution != Convolution::kFused || found == units.end()) return std::nullopt;
    const int64_t rows = sequences * channels;
    const int64_t of_a_block = std::max<int64_t>(2, 4096 / points);
    const int64_t bytes = 4 * rows * points * kActivation + channels * points * kFloat;
    return TimeOf(CountsOf(*found, static_cast<double>(rows),
                           static_cast<double>(DivideUp(rows, of_a_block)),
                           static_cast<double>(bytes)),
                  rates_)
        .seconds;
  }

 private:
  const DeviceRates rates_;
};

}  // namespace

std::unique_ptr<DeviceYardsticks> MakeModelledYardsticks(const DeviceRates& rates) {
  return std::make_unique<ModelledYardsticks>(rates);
}

}  // namespace hippodrome
