// The operations that models are written in: one vocabulary, several backends.
//
// A backend owns memory and arithmetic. Models call these operations and nothing else, so that a
// new backend, or a faster fusion inside one, changes no model. SequenceBackend has what a forward
// over whole sequences needs, which is all that encoders and training call; Backend adds what
// serving a decoder needs: parts of sequences, steps and their states. Formulas use the symbols of
// "Hungry Hungry Hippos" (Fu et al., 2023; "H3" below), of "Pretraining Without Attention" (Wang et
// al., 2022; "BiGS" below), and of their published code.
//
// Conventions.
//  * Values that a layer passes between its operations are activations, matrices [rows, cols] of
//    the type that NewActivations() gives. The residual stream, logits and constants are matrices
//    of the type that NewTensor() gives: f32, in the reference f64. A row is a token (prefill) or a
//    sequence (step).
//  * Outputs are given by the caller and must not overlap inputs unless the contract says so.
//  * Preconditions are the caller's duty: they are checked by assert() where that is cheap.
//  * Row independence: row i of every result depends on row i of the inputs (and on its slot)
//    alone. On processors that holds bit for bit, whatever the number of rows and threads: a
//    sequence has the same logits and tokens whatever runs beside it. On devices it holds within
//    the error bound: the number of rows may decide between kernels, and between orders of a sum,
//    that differ in their last bits. So devices promise the same tokens within the error bound
//    only: where a choice hangs on less, what runs beside a sequence may decide it.
//  * Prefill and step compute the same within the error bound, on processors and on devices.
//  * Error bounds are absolute, with u = 2^-24 (f32) and g(n) = n u / (1 - n u). A result stored as
//    bf16 is rounded once more, to nearest even.
//  * Threads: calls on one backend must not overlap in time. Handles may be destroyed on any
//    thread.
//  * Failures of a device are thrown as DeviceError by the next operation that waits for it.
#ifndef HIPPODROME_KERNELS_BACKEND_H_
#define HIPPODROME_KERNELS_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "kernels/tensor.h"

namespace hippodrome {

// ---- Host-side descriptions (plain memory, read during the call only) --------------------------

// A row-major matrix in host memory, dtype kF32, kBF16, kF16, kI8 or kI4; rows of RowBytes() are
// adjacent. kI8 and kI4: integers with the scales of their groups (kernels/quantized_group.h), kI4
// as PackInt4() packs neighbours.
struct HostMatrix {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  const BF16* scales = nullptr;  // [rows, QuantizedGroups(cols)]
};

enum class Discretization : uint8_t { kBilinear, kZoh };

// Order of the d output channels of an H3 layer with head_dim > 1 (same thing for head_dim 1).
enum class H3OutputOrder : uint8_t {
  kHeadD2,  // channel = head * head_dim + d2: the paper and the fused training kernel
  kD2Head,  // channel = d2 * heads + head: the published PyTorch fallback
};

// The trained parameters of both SSMs of one H3 layer, as stored in a checkpoint (f32).
// d = d_model, H = d / head_dim heads, N = d_state, M = N / 2 stored complex modes, S = n_ssm rows
// of A and B; head h uses row h mod S. Complex numbers are (re, im) pairs.
struct H3Parameters {
  int64_t d_model = 0;
  int64_t head_dim = 1;
  int64_t d_state = 0;
  int64_t n_ssm = 0;
  Discretization discretization = Discretization::kBilinear;
  H3OutputOrder output_order = H3OutputOrder::kHeadD2;
  std::span<const float> shift_b;     // [d, N]
  std::span<const float> shift_c;     // [d, N]
  std::span<const float> shift_d;     // [d], skip of the shift SSM
  std::span<const float> d;           // [H], skip of the diagonal SSM
  std::span<const float> log_dt;      // [H]
  std::span<const float> inv_a_real;  // [S, M], Re A = -exp(inv_a_real)
  std::span<const float> a_imag;      // [S, M]
  std::span<const float> b;           // [S, M, 2]
  std::span<const float> c;           // [H, M, 2]
};

// How the stored numbers of a diagonal SSM give its state matrix A.
enum class StateMatrixForm : uint8_t {
  kClamped,  // A = min(a_real, -1e-4) + i a_imag        BiGS
  kExpReal,  // A = -exp(a_real) + i a_imag              S4D
  kExpBoth,  // A = -exp(a_real) + i exp(a_imag)         GSS
};

// The trained parameters of a diagonal SSM whose convolution LongConv() computes, as stored in a
// checkpoint (f32). d channels, H kernels, of which channel c uses c / (d / H): one in the
// published BiGS models, one for each channel in S4D and GSS. N complex modes. Head h uses row h
// mod S of A. Complex numbers are (re, im) pairs.
struct DiagonalSsmParameters {
  int64_t channels = 0;  // d, a multiple of H
  int64_t heads = 1;     // H
  int64_t modes = 0;     // N
  int64_t n_ssm = 0;     // S, rows of A, which divides H; 0: H
  StateMatrixForm form = StateMatrixForm::kClamped;
  double scale = 1;  // of the sum over modes: 2 where each stands for a conjugate pair, else 1
  std::span<const float> a_real;    // [S, N]
  std::span<const float> a_imag;    // [S, N]
  std::span<const float> c;         // [H, N, 2]
  std::span<const float> log_step;  // [H], or empty: dt = 1
  std::span<const float> d;         // [H]
};

// The trained parameters of an S4 layer (Gu et al., 2022), whose state matrix is normal plus low
// rank, A = diag(Lambda) - P P*, as stored in a checkpoint (f32). d channels, a kernel for each; M
// complex modes, halves of conjugate pairs; channel c uses row c mod S of Lambda, B and P.
struct NplrParameters {
  int64_t channels = 0;             // d
  int64_t modes = 0;                // M
  int64_t n_ssm = 0;                // S, rows of Lambda, B and P, which divides d; 0: d
  int64_t c_length = 0;             // l_kernel: c holds C (I - dA^length); 0: c holds C
  std::span<const float> a_real;    // [S, M], Re Lambda = -exp(a_real)
  std::span<const float> a_imag;    // [S, M], Im Lambda = -a_imag
  std::span<const float> b;         // [S, M, 2]
  std::span<const float> p;         // [S, M, 2]
  std::span<const float> c;         // [d, M, 2]
  std::span<const float> log_step;  // [d]
  std::span<const float> d;         // [d]
};

using LongConvParameters = std::variant<DiagonalSsmParameters, NplrParameters>;

// Which way an SSM of an encoder runs through time.
enum class Direction : uint8_t { kForward, kBackward };

// One array of what a sequence keeps in one layer, in the layout that all backends exchange: f32,
// row-major.
struct StateArray {
  std::string name;  // "modes"
  std::vector<int64_t> shape;
  bool pending = false;  // has a row for each pending token, shape[0] at most

  int64_t values() const {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  }
  // With `tokens` pending.
  StateArray Of(int64_t tokens) const {
    StateArray array = *this;
    if (pending) array.shape[0] = tokens;
    return array;
  }
};

// A window of attention begins at a multiple of so many tokens.
inline constexpr int64_t kWindowBlock = 64;

// Geometry of an attention layer.
struct AttentionShape {
  int64_t heads = 1;
  int64_t head_dim = 0;    // heads * head_dim = d
  int64_t rotary_dim = 0;  // rotated dimensions of each head (GPT-NeoX halves), 0 for none
  // Keys that a query sees at least, where there are as many, its own among them; 0: all. Of
  // AttentionSequence() and AttentionStep().
  int64_t window = 0;

  // The first key that the query at `position` sees: that of its window, rounded down to a block.
  constexpr int64_t FirstSeen(int64_t position) const {
    if (window == 0 || position < window) return 0;
    return (position + 1 - window) / kWindowBlock * kWindowBlock;
  }
};

// Geometry of a linear attention layer.
struct LinearAttentionShape {
  int64_t heads = 1;
  int64_t head_dim = 0;  // heads * head_dim = d
};
inline constexpr double kLinearAttentionEpsilon = 1e-6;

// How the next token of a sequence is chosen; see Backend::Sample.
struct SamplingParameters {
  float temperature = 1.0f;  // >= 0; 0 chooses greedily
  int32_t top_k = 0;         // keep the k most likely tokens; 0 keeps all
  float top_p = 1.0f;        // (0, 1]: keep the smallest set of tokens whose probability reaches it
  float min_p = 0.0f;        // [0, 1]: drop tokens less likely than min_p times the most likely one
  float typical_p = 1.0f;    // (0, 1]: keep the tokens of most typical surprise that reach it
  uint64_t seed = 0;
};

// One row of what Backend::Sample reads: the parameters and the number of tokens before the new
// one.
struct SamplingRow {
  SamplingParameters parameters;
  int64_t position = 0;
};
inline constexpr int64_t kSamplingColumns = sizeof(SamplingRow) / sizeof(int32_t);
static_assert(sizeof(SamplingRow) == 40 && std::is_trivially_copyable_v<SamplingRow>);

// The rows of `rows` as indices [rows.size(), kSamplingColumns], to be uploaded.
inline std::span<const int32_t> AsIndices(std::span<const SamplingRow> rows) {
  return {reinterpret_cast<const int32_t*>(rows.data()), rows.size() * kSamplingColumns};
}

// What is done to the logit of one token before the next token is chosen:
//   l' = (l > 0 ? l / repetition : l * repetition) + addend
struct LogitAdjustment {
  int32_t token = 0;     // in [0, vocab)
  float repetition = 1;  // > 0 (CTRL, Keskar et al., 2019, section 4.1)
  float addend = 0;      // a bias, less penalties
  float before = 0;      // room for Sample(): l
};
inline constexpr int64_t kAdjustmentColumns = sizeof(LogitAdjustment) / sizeof(int32_t);
static_assert(sizeof(LogitAdjustment) == 16 && std::is_trivially_copyable_v<LogitAdjustment>);

// `adjustments` as indices [adjustments.size(), kAdjustmentColumns], to be uploaded.
inline std::span<const int32_t> AsIndices(std::span<const LogitAdjustment> adjustments) {
  return {reinterpret_cast<const int32_t*>(adjustments.data()),
          adjustments.size() * kAdjustmentColumns};
}

// The adjustments of B rows: row i has entries [offsets_i, offsets_{i+1}), of different tokens.
struct LogitAdjustments {
  Tensor offsets;  // kI32 [1, B + 1], ascending from 0; empty (data null): no row has any
  Tensor entries;  // kI32 [>= offsets_B, kAdjustmentColumns], adjacent rows, LogitAdjustment each
};

// What a LayerNorm has beside its rows.
struct NormParameters {
  Tensor gamma;  // [1, d]
  Tensor beta;   // [1, d]
  double epsilon = 0;
};

// ---- Opaque handles, made and read by one backend ----------------------------------------------

// A matrix W [out, in] in the backend's packed layout, of one weight dtype.
class LinearWeights {
 public:
  virtual ~LinearWeights() = default;
  virtual int64_t out() const = 0;
  virtual int64_t in() const = 0;
  virtual int64_t bytes() const = 0;
};

// The constants of one H3 layer for prefill and steps: folded taps, discretised modes, kernels.
class H3Weights {
 public:
  virtual ~H3Weights() = default;
  virtual int64_t bytes() const = 0;
};

// The kernels of one LongConvParameters in the form in which LongConv() uses them.
class LongConvWeights {
 public:
  virtual ~LongConvWeights() = default;
  virtual int64_t longest() const = 0;  // tokens of a sequence, at most
  virtual int64_t bytes() const = 0;    // grows at the first use of a length
};

// The constants of the SSM of a decoder's layer in the form in which SsmSequence() and SsmStep()
// take them.
class SsmWeights {
 public:
  virtual ~SsmWeights() = default;
  virtual int64_t bytes() const = 0;
};

// The recurrent states of one layer for a fixed number of slots.
class RecurrentState {
 public:
  virtual ~RecurrentState() = default;
  virtual int64_t slots() const = 0;
  virtual int64_t bytes_per_slot() const = 0;
  // Of a slot, that a step reads and those that it writes, together, on average over positions.
  virtual int64_t bytes_per_step() const = 0;
  // A slot after any token of [j n, (j + 1) n) serves as its state after an earlier one of these
  // too, once that position is what operations are given: n; 1: it cannot go back.
  virtual int64_t rewind_block() const { return 1; }
  // What Backend::ExportSlot() gives and ImportSlot() takes, in this order. An H3 layer's:
  //   shift_inputs [d, N]       raw k of the last N tokens, oldest first; 0 before the first token
  //   modes [h_1, h_2, H, M, 2] x_{T-P} / dB of the diagonal SSM (re, im)
  //   pending [P, h_1, h_2, H]  kv of the last P tokens, oldest first, which modes do not have yet
  // with h_1 = h_2 = head_dim, and P < kCaptureTokens, at most T mod kCaptureTokens.
  virtual std::vector<StateArray> arrays() const = 0;
};

// States are copied where as many tokens lie before them as a multiple of this.
inline constexpr int64_t kCaptureTokens = 8;

// RecurrentState::arrays() of an H3 layer.
inline std::vector<StateArray> H3StateArrays(int64_t heads, int64_t head_dim, int64_t d_state) {
  return {{"shift_inputs", {heads * head_dim, d_state}},
          {"modes", {head_dim, head_dim, heads, d_state / 2, 2}},
          {"pending", {kCaptureTokens - 1, head_dim, head_dim, heads}, true}};
}

// RecurrentState::arrays() of the SSM of a decoder's layer: x_T of its d channels (re, im), that of
// a diagonal SSM divided by its B.
inline std::vector<StateArray> SsmStateArrays(int64_t channels, int64_t modes) {
  return {{"modes", {channels, modes, 2}}};
}

// RecurrentState::arrays() of a linear attention layer: S and z of each head.
inline std::vector<StateArray> LinearAttentionStateArrays(const LinearAttentionShape& shape) {
  return {{"kv", {shape.heads, shape.head_dim, shape.head_dim}},
          {"normalizer", {shape.heads, shape.head_dim}}};
}

// Key and value rows of one attention layer in pages of `page_tokens` tokens.
class KeyValuePages {
 public:
  virtual ~KeyValuePages() = default;
  virtual int64_t pages() const = 0;
  virtual int64_t page_tokens() const = 0;
  virtual int64_t bytes_per_page() const = 0;
  // As RecurrentState::rewind_block().
  virtual int64_t rewind_block() const { return 1; }
};

// The tokens of one sequence among the rows of a pass.
struct SequencePart {
  int32_t slot = -1;      // -1 marks an inert part, whose rows of o are unspecified
  int32_t first_row = 0;  // its rows are [first_row, first_row + tokens)
  int32_t tokens = 0;     // >= 1
  int32_t start = 0;      // position of its first token; 0 promises an empty state
};

// The first tokens of a sequence that enters with at least as many may be transformed together:
// there is no state between them.
inline constexpr int64_t kTransformTokens = 256;

// A state that is copied on its way: that of a part after some of its tokens, to another slot.
struct StateCapture {
  int32_t part = 0;    // of the pass
  int32_t tokens = 0;  // >= 1, of the part; see FitsCapture()
  int32_t to = 0;      // the slot, of no part
};

// Whether the state of `part` can be copied after `tokens` of its tokens.
constexpr bool FitsCapture(const SequencePart& part, int64_t tokens) {
  const bool transforms = part.start == 0 && part.tokens >= kTransformTokens;
  return tokens >= (transforms ? kTransformTokens : 1) && tokens <= part.tokens &&
         (part.start + tokens) % kCaptureTokens == 0;
}

// `sequences` whole sequences of `tokens` tokens, in the slots from 0 on.
inline std::vector<SequencePart> WholeSequences(int64_t sequences, int64_t tokens) {
  std::vector<SequencePart> parts;
  for (int64_t i = 0; i < sequences; ++i) {
    parts.push_back({.slot = static_cast<int32_t>(i),
                     .first_row = static_cast<int32_t>(i * tokens),
                     .tokens = static_cast<int32_t>(tokens)});
  }
  return parts;
}

// Parts of any starts and lengths that go together, and the states that are copied on the way.
struct SequenceParts {
  std::span<const SequencePart> parts;     // of different slots; adjacent, in the order of rows
  std::span<const StateCapture> captures;  // ascending by part, then tokens; to different slots

  int64_t rows() const { return parts.empty() ? 0 : parts.back().first_row + parts.back().tokens; }
};

// Operations that were captured once and can be replayed; see Backend::Replay.
class Graph {
 public:
  virtual ~Graph() = default;
};

// How a backend likes prompts to be cut; see Backend::prefill_shape.
struct PrefillShape {
  int64_t grid = 512;  // tokens of one sequence at most, cut at absolute multiples of it
  int64_t rows = 512;  // tokens of all sequences together, >= grid
};

// What a linear operation does to W x before it stores it, in this order. Tensors are of the
// output's type, and empty (data null) for none.
struct Epilogue {
  enum class Activation : uint8_t { kNone, kGeluTanh, kGeluErf, kTanh, kRelu, kSilu, kSigmoid };
  Tensor bias;  // [1, out]
  Activation activation = Activation::kNone;
  Tensor gate;      // [rows, out], multiplied; may be the output itself
  Tensor residual;  // [rows, out], added last; may be the output itself
};

// Where training drops activations at random.
enum class DropoutSite : uint8_t { kEmbedding, kHead };

// A learned row that is added to the embedding of each token.
struct AddedRows {
  Tensor table;    // [n, d] of the residual stream's type; empty (data null) adds nothing
  Tensor indices;  // kI32 [1, rows], each in [0, n), or -1 to add nothing; unread without a table
};

// What a forward over whole sequences needs, be it to serve or to train. Sequences begin at
// position 0 from empty states; whether those then hold anything is left to the backend. One that
// can go on from them, and take a sequence in parts, is a Backend.
class SequenceBackend {
 public:
  virtual ~SequenceBackend() = default;

  // A short name: "cpu", "cuda", "reference".
  virtual std::string name() const = 0;

  // ---- Memory --------------------------------------------------------------------------------

  // A zeroed matrix of the type of the residual stream.
  virtual OwnedTensor NewTensor(int64_t rows, int64_t cols) = 0;
  // A zeroed matrix of activations, beside products with weights of type `weights`: kBF16 on
  // devices, but beside kF32 weights, else as NewTensor().
  virtual OwnedTensor NewActivations(int64_t rows, int64_t cols, DType weights) = 0;
  // A zeroed matrix of activations that nothing reads but products with weights of type `weights`,
  // in the form that they read: kBF16, or kI8 in groups, on processors whose products would round
  // rows to it by themselves, with the same bits; else as NewActivations().
  virtual OwnedTensor NewProductInputs(int64_t rows, int64_t cols, DType weights) {
    return NewActivations(rows, cols, weights);
  }
  // A zeroed matrix of kI32 indices.
  virtual OwnedTensor NewIndices(int64_t rows, int64_t cols) = 0;
  // Copies values (row-major, dst.rows * dst.cols of them) into `dst`, converting from f32.
  virtual void Upload(std::span<const float> values, Tensor dst) = 0;
  virtual void UploadIndices(std::span<const int32_t> values, Tensor dst) = 0;
  // Copies `src` out (row-major), converting to f32. Waits for pending work, and throws DeviceError
  // if any of it failed.
  virtual void Download(Tensor src, std::span<float> values) = 0;
  virtual void DownloadIndices(Tensor src, std::span<int32_t> values) = 0;
  // Waits for pending work, and throws DeviceError if any of it failed.
  virtual void Wait() {}

  // ---- Weights, prepared once ----------------------------------------------------------------

  // Packs the matrices of `parts`, stacked by rows (q, k, v become one product), as `dtype`: kF32,
  // kBF16 (rounded to nearest even), or kI8 or kI4 (in groups, see kernels/quantized_group.h), for
  // which a backend that has no such products gives null. REQUIRES: equal cols; finite values for
  // kI8 and kI4; parts of kI8 or kI4 only where `dtype` is the same. The host memory is not kept.
  virtual std::unique_ptr<LinearWeights> PackLinear(std::span<const HostMatrix> parts,
                                                    DType dtype) = 0;
  // Folds, discretises and transforms the SSM parameters in double (H3 section 3; h3.py).
  //   taps[j] = sum_n B[n] C[n+j], j < N                                      (shift SSM)
  //   dt = exp(log_dt), A = -exp(inv_a_real) + i a_imag, z = dt A
  //   bilinear: dA = (1 + z/2) / (1 - z/2), dB = B dt / (1 - z/2)
  //   zoh:      dA = exp(z),                dB = B (exp(z) - 1) / A           (diagonal SSM)
  // `weights`: as for the NewActivations() that made the layer's qkv and o.
  virtual std::unique_ptr<H3Weights> PrepareH3(const H3Parameters& parameters, DType weights) = 0;
  // The kernels of a layer's SSM, computed in double. A diagonal one (BiGS section 3, S4D, GSS;
  // zero-order hold with B = 1):
  //   dt = exp(log_step), A as its form says
  //   K[l] = scale Re sum_n C_n (exp(dt A_n) - 1) / A_n exp(l dt A_n),  l < longest
  // An NPLR one (S4 section 3; bilinear): dA = (I - dt/2 A)^-1 (I + dt/2 A), dB = (I - dt/2 A)^-1
  // dt B, K[l] = 2 Re C dA^l dB.
  // `longest`: the longest sequence, in tokens; `weights`: as for the NewActivations() that made
  // the layer's u and y.
  virtual std::unique_ptr<LongConvWeights> PrepareLongConv(const LongConvParameters& parameters,
                                                           int64_t longest, DType weights) = 0;

  // The constants of the same SSMs where they mix the tokens of a decoder, forwards in time.
  // `weights`: as for the NewActivations() that made the layer's u and y.
  virtual std::unique_ptr<SsmWeights> PrepareSsm(const LongConvParameters& parameters,
                                                 DType weights) = 0;

  // ---- State ---------------------------------------------------------------------------------

  // `slots` states, all empty: that of a sequence without tokens. A state goes with the position of
  // the sequence's next token, which the operations are told. `weights` must outlive the states.
  // `type`: of the inputs of the shift SSM and of the modes, see H3Sequence(). REQUIRES:
  // HasH3States(type).
  virtual std::unique_ptr<RecurrentState> NewH3State(const H3Weights& weights, int64_t slots,
                                                     DType type) = 0;
  // Of kF32 and kBF16; kF32 is always there.
  virtual bool HasH3States(DType type) const { return type == DType::kF32; }
  virtual std::unique_ptr<RecurrentState> NewSsmState(const SsmWeights& weights, int64_t slots) = 0;
  virtual std::unique_ptr<RecurrentState> NewLinearAttentionState(const LinearAttentionShape& shape,
                                                                  int64_t slots) = 0;
  // `pages` pages of `page_tokens` rows, each 2 * d values, rounded to KeyValueType(weights), to
  // nearest even; `weights`: as for the NewActivations() that made the layer's qkv. Memory is
  // touched on first use.
  virtual std::unique_ptr<KeyValuePages> NewKeyValuePages(const AttentionShape& shape,
                                                          int64_t pages, int64_t page_tokens,
                                                          DType weights) = 0;

  // ---- Operations ----------------------------------------------------------------------------

  // y_i = E[ids_i] + T[types_i] + P[positions_i].  table: E [V, d] as packed for the output head,
  // so that a tied embedding is stored once; ids: kI32 [1, rows], in [0, V), or -1 for an inert
  // row, which adds nothing; y: [rows, d] of the residual stream's type. Error: that of two
  // additions.
  virtual void Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                         const AddedRows& positions, Tensor y) = 0;

  // y = (x - mean(x)) / sqrt(var(x) + eps) * gamma + beta per row, population variance.
  // x: [rows, d] of the residual stream's type; y: [rows, d], activations or of the residual
  // stream's type, may be x; gamma, beta: [1, d]. Error <= 4 g(d) |x|_2-scaled.
  virtual void LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) = 0;

  // y = epilogue(x W^T).  x: activations [rows, in]; y: [rows, out], activations or of the residual
  // stream's type; bias and residual: of y's type, or of activations' where y is product inputs.
  // kF32 weights: |error| <= g(in + 2) |x| |W|^T before the epilogue. kBF16 weights: x is rounded
  // to bf16 first, products are exact and sums f32. kI8, kI4: x is rounded as quantized_group.h
  // says, sums within a group are exact, and with those of its G groups S_g: |error| <= g(G + 2)
  // sum_g |S_g|.
  virtual void Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) = 0;

  // Says that Linear() with w comes after the next operation, which may ask memory for what that
  // will read. Changes no result.
  virtual void ExpectLinear(const LinearWeights& w) { (void)w; }

  // LayerNorm() of x to u, and behind it Linear() of u to y: the same bits in y, which is neither x
  // nor u. Of u nothing is known afterwards: a backend may keep it to itself.
  virtual void LayerNormLinear(Tensor x, const NormParameters& norm, Tensor u,
                               const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
    ExpectLinear(w);
    LayerNorm(x, norm.gamma, norm.beta, norm.epsilon, u);
    Linear(u, w, epilogue, y);
  }

  // What follows the product of Linear() without a product, y = epilogue(x): x, y, gate and
  // residual are matrices [rows, cols] of one type. y may be x. REQUIRES: no bias. Error: that of
  // Linear()'s epilogue.
  virtual void Activate(Tensor x, const Epilogue& epilogue, Tensor y) = 0;

  // One H3 layer between its projections, over consecutive tokens of some sequences (H3 section
  // 3.1, Algorithm 1; state passing as in section 4.2, Algorithm 2):
  //   ks_t = sum_{j<N} taps[j] k_{t-j} + shift_d k_t                     shift SSM
  //   kv_t = ks_t v_t^T          per head, [head_dim, head_dim]
  //   y_t  = 2 Re sum_n C_n x_t[n] + D kv_t,  x_t = dA x_{t-1} + dB kv_t     diagonal SSM
  //   o_t[d2] = sum_{d1} q_t[d1] y_t[d1, d2]
  // with the state of the part's slot before the first token as x_{-1} and as the k of earlier
  // tokens; the state after the last token replaces it. States of kBF16 have numbers of bf16 alone,
  // to nearest even: k_t is rounded before all else, and x_t / dB (re and im) wherever t + 1 is a
  // multiple of kCaptureTokens, inside of a transform only at its end; what follows is computed
  // from what was rounded. Sums are f32 all the same. The convolution is computed by FFT, by a
  // blocked scan or by the recurrence: all lead to the same state within rounding. What a part
  // gives does not depend on the parts beside it, nor on captures; on devices, where a capture cuts
  // the part, within the error bound. On processors a part from position 0 of kTransformTokens
  // tokens and more transforms exactly the first of them; all else is scanned in blocks of
  // kCaptureTokens from absolute multiples of it. So there the bits do not depend on how a sequence
  // is cut at such multiples, but not before kTransformTokens unless it has fewer. qkv: [rows, 3
  // d], columns q | k | v; o: [rows, d]. REQUIRES: FitsCapture() for all captures; no captures and
  // parts of equal length from position 0, unless this is a Backend. Error <= c u log2(T) |K|_2
  // |kv|_2 |q| with a small constant c: global, as an FFT's is; for bf16 activations c may also
  // cover the rounding of operands to 11 bits (u = 2^-11).
  virtual void H3Sequence(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                          const SequenceParts& parts, Tensor o) = 0;

  // The SSM of a decoder's layer over consecutive tokens of some sequences:
  //   y_t = D u_t + sum_{l <= t} K[l] u_{t-l},  K as at PrepareLongConv()
  // as the recurrence that has this kernel, from the state of the part's slot, which the state
  // after the last token replaces. A diagonal SSM, A and B as there, per channel:
  //   x_t = exp(dt A) x_{t-1} + u_t;  y_t = scale Re sum_n C_n B_n x_t[n] + D u_t
  // An NPLR one: x_t = dA x_{t-1} + dB u_t; y_t = 2 Re sum_n C_n x_t[n] + D u_t.
  // What a part gives does not depend on the parts beside it, nor on captures; on processors the
  // bits do not depend on how a sequence is cut into parts and steps either.
  // u: activations [rows, d]; y: activations [rows, d]. REQUIRES: as for H3Sequence(). The error of
  // f32 is that of t roundings of |exp(dt A)| and of each sum: <= c u sum_n |C_n B_n| sum_l (l + c)
  // |exp(dt A_n)|^l |u_{t-l}| with a small constant c.
  virtual void SsmSequence(const SsmWeights& weights, Tensor u, RecurrentState& state,
                           const SequenceParts& parts, Tensor y) = 0;

  // Linear attention (Katharopoulos et al., 2020, section 3.3, whose form H3 section 3 starts from)
  // over consecutive tokens of some sequences, with phi(x) = elu(x) + 1, that is x + 1 for x > 0
  // and else exp(x), per head:
  //   S_t = S_{t-1} + phi(k_t) v_t^T;  z_t = z_{t-1} + phi(k_t)
  //   o_t = phi(q_t)^T S_t / (phi(q_t)^T z_t + kLinearAttentionEpsilon)
  // from the state of the part's slot, which the state after the last token replaces. What a part
  // gives does not depend on the parts beside it, nor on captures; on processors the bits do not
  // depend on how a sequence is cut into parts and steps either.
  // qkv: activations [rows, 3 d], columns q | k | v, heads adjacent in each; o: activations [rows,
  // d]. REQUIRES: as for H3Sequence(). The terms of sums over keys are positive but for v, so that
  // f32 is off by <= c u (t + head_dim) sum_{s <= t} w_ts |v_s|, with the weight w_ts of v_s in
  // o_t, and a small constant c: the state adds up one rounding for each token.
  virtual void LinearAttentionSequence(const LinearAttentionShape& shape, Tensor qkv,
                                       RecurrentState& state, const SequenceParts& parts,
                                       Tensor o) = 0;

  // Causal multi-head attention of consecutive tokens of some sequences over the cached rows of
  // earlier positions and over themselves:
  //   q, k rotated at their positions if rotary_dim > 0; the rows k | v are stored in the pages;
  //   o_t = sum_{f <= s <= t} softmax_s(q_t . k_s / sqrt(head_dim)) v_s   per head,
  //   f = shape.FirstSeen(t).
  // On processors the bits do not depend on how a sequence is cut. qkv: [rows, 3 d]; page_tables:
  // kI32 [parts, P], row i of part i, whose column j is the page of positions [b + j * page_tokens,
  // b + (j+1) * page_tokens), b = shape.FirstSeen(start): pages before the window are in no table;
  // inv_freq: [1, rotary_dim / 2], empty without rotary; o: [rows, d]. Captures are not read.
  // REQUIRES: start + tokens - b <= P * page_tokens; page_tokens is kWindowBlock where there is a
  // window; parts of equal length from position 0, unless this is a Backend.
  virtual void AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                 KeyValuePages& pages, Tensor page_tables,
                                 const SequenceParts& parts, Tensor o) = 0;

  // A convolution over time of every channel of B sequences of T tokens with the kernel of its
  // head, causal, or the same in reversed time, which is what an encoder means by backward:
  //   kForward:   y_t = D u_t + sum_{l <= t} K[l] u_{t-l}
  //   kBackward:  y_t = D u_t + sum_{l < T-t} K[l] u_{t+l}
  // by a product with a Toeplitz matrix at short lengths and by FFT at long ones.
  // u: activations [B T, d], the rows of a sequence adjacent; y: activations [B T, d]. REQUIRES:
  // T <= weights.longest(). A sequence's rows depend on that sequence alone.
  // Error <= c u log2(T) |K|_2 |u|_2 with a small constant c, or g(T) |K| * |u|; for bf16
  // activations c may also cover the rounding of operands to 16 bits.
  virtual void LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences,
                        Direction direction, Tensor y) = 0;

  // Multi-head attention of every token to every unmasked token of its sequence, for B sequences
  // of T tokens:
  //   o_t = sum_{s: mask_s = 1} softmax_s(q_t . k_s / sqrt(head_dim)) v_s      per head.
  // qkv: [B T, 3 d], the rows of a sequence adjacent; mask: kI32 [B, T] of 0 and 1; o: [B T, d].
  // Rows of a sequence without unmasked tokens are zero.
  virtual void BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                                      Tensor o) = 0;

  // y_b = sum_t mask_bt x_bt / sum_t mask_bt.  x: [B T, d] of the residual stream's type; mask:
  // kI32 [B, T] of 0 and 1; y: [B, d], activations or of the residual stream's type; zero for a
  // sequence without unmasked tokens. Error <= g(T) mean |x|.
  virtual void MeanPool(Tensor x, Tensor mask, Tensor y) = 0;

  // y_i = x[rows_i], or zero for rows_i = -1.  x: [n, d] of the residual stream's type; rows: kI32
  // [1, m]; y: [m, d], activations or of the residual stream's type. Exact but for y's rounding.
  virtual void GatherRows(Tensor x, Tensor rows, Tensor y) = 0;

  // What training drops from x, in place, at one of its sites; serving drops nothing.
  virtual void Dropout(DropoutSite site, Tensor x) {
    (void)site;
    (void)x;
  }
};

// What serving a decoder needs beside: parts of sequences, single tokens, and the states between.
class Backend : public SequenceBackend {
 public:
  // ---- Shapes ---------------------------------------------------------------------------------

  // Beyond these sizes prefill gains nothing; constants of a backend.
  virtual PrefillShape prefill_shape() const { return {}; }
  // How many rows, >= `rows`, a step of `rows` sequences should have, the rest inert: graphs of few
  // sizes then serve every step. A device may compute steps of different sizes by different
  // kernels: what a sequence gets from them is the same within the error bound; on processors, bit
  // for bit.
  virtual int64_t StepRows(int64_t rows) const { return rows; }

  // ---- State ----------------------------------------------------------------------------------

  // Makes a slot's state empty.
  virtual void ResetSlot(RecurrentState& state, int64_t slot) = 0;
  virtual void CopySlot(RecurrentState& state, int64_t from, int64_t to) = 0;
  // The state of `slot` after `position` tokens, in state.arrays(), each of which has room for its
  // shape; returns how many tokens are pending. Waits for pending work. What was exported and is
  // imported at the same position, in any slot of a state of the same shape, goes on with the same
  // bits on processors, and within the error bound on devices; a state of another backend goes on
  // within the error bound. What is imported has rows for the pending tokens alone: their number
  // follows from its size. H3 states of kBF16 round inputs of the shift SSM and modes that are
  // imported to nearest even, which leaves those as they are that such a state has exported.
  virtual int64_t ExportSlot(const RecurrentState& state, int64_t slot, int64_t position,
                             std::span<const std::span<float>> arrays) = 0;
  virtual void ImportSlot(RecurrentState& state, int64_t slot, int64_t position,
                          std::span<const std::span<const float>> arrays) = 0;
  // The rows of positions [first, first + count) of the sequence with the pages of `page_table`:
  // keys and values [count, d] each, keys as attention takes them (rotated). Exact, if the values
  // were exported from pages of the same type. Export waits for pending work.
  virtual void ExportRows(const KeyValuePages& pages, std::span<const int32_t> page_table,
                          int64_t first, int64_t count, std::span<float> keys,
                          std::span<float> values) = 0;
  virtual void ImportRows(KeyValuePages& pages, std::span<const int32_t> page_table, int64_t first,
                          int64_t count, std::span<const float> keys,
                          std::span<const float> values) = 0;
  virtual void CopyPage(KeyValuePages& pages, int32_t from, int32_t to) = 0;

  // ---- Steps ----------------------------------------------------------------------------------

  // H3Sequence() of one token of each of B sequences. qkv: [B, 3 d]; slots: kI32 [1, B], -1 marks
  // an inert row, whose output is zero; positions: kI32 [1, B], of the tokens; o: [B, d]. REQUIRES:
  // slots are distinct or -1; but rows side by side may be tokens of one sequence in a row, all of
  // one rewind_block(), with the bits of as many calls.
  virtual void H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state, Tensor slots,
                      Tensor positions, Tensor o) = 0;

  // Says that H3Step() with these comes after the next Linear(), which may ask memory for what it
  // will read. Changes no result.
  virtual void ExpectH3Step(const H3Weights& weights, const RecurrentState& state, Tensor slots,
                            Tensor positions) {
    (void)weights, (void)state, (void)slots, (void)positions;
  }

  // SsmSequence() of one token of each of B sequences. u, y: [B, d]; slots: as for H3Step().
  virtual void SsmStep(const SsmWeights& weights, Tensor u, RecurrentState& state, Tensor slots,
                       Tensor y) = 0;

  // LinearAttentionSequence() of one token of each of B sequences. qkv: [B, 3 d]; o: [B, d]; slots:
  // as for H3Step().
  virtual void LinearAttentionStep(const LinearAttentionShape& shape, Tensor qkv,
                                   RecurrentState& state, Tensor slots, Tensor o) = 0;

  // AttentionSequence() of one token of each of B sequences. positions: kI32 [1, B], -1 marks an
  // inert row, whose output is zero; page_tables: kI32 [B, P], row i of sequence i, from the page
  // of shape.FirstSeen(positions_i) on. Rows side by side may be tokens of one sequence in a row,
  // all of one rewind_block() and with the same page there, with the bits of as many calls.
  virtual void AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                             KeyValuePages& pages, Tensor page_tables, Tensor positions,
                             Tensor o) = 0;

  // Chooses one token per row among the first `vocab` columns (padded ids are never chosen).
  // `adjustments` change the logits first. Greedy (temperature 0): the largest logit, the smallest
  // id among equals. Otherwise: logits / temperature, keep top_k, softmax, keep typical_p,
  // renormalise, drop below min_p, renormalise, keep top_p, renormalise, draw along the descending
  // order by a counter-based generator keyed by (seed, position): the same logits give the same
  // token whatever the other rows are. typical_p (locally typical sampling, Meister et al., 2023)
  // keeps the tokens whose surprise -log p is nearest to its mean, those within the least distance
  // for which their probability reaches typical_p.
  // A row with a NaN, with plus infinity or with nothing above minus infinity gives -1.
  // logits: [B, >= vocab], written and restored; rows: kI32 [B, kSamplingColumns], SamplingRow
  // each; tokens: kI32 [1, B].
  virtual void Sample(Tensor logits, int64_t vocab, Tensor rows,
                      const LogitAdjustments& adjustments, Tensor tokens) = 0;

  // log p of given tokens and of the k likeliest of each row, p = softmax of the first `vocab`
  // columns of its logits:  log p_j = l_j - log sum_{i < vocab} exp(l_i).
  // logits: [B, >= vocab]; tokens: kI32 [1, B], -1 for none; log_probabilities: [B, 1 + k] of the
  // residual stream's type, that of tokens_i (0 for none), then those of likeliest_i; likeliest:
  // kI32 [B, k] in descending order, the smallest id first among equals, k <= vocab, unread for k =
  // 0. Equal logits have equal values. What a row has that Sample() gives -1 for is unspecified.
  // Error <= 2 u |log p|; on devices 4 u (1 + |log p|).
  virtual void LogProbabilities(Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                                Tensor log_probabilities) = 0;

  // Runs `work`, which calls operations of this backend and neither uploads nor downloads. Whenever
  // it is called with the same `graph`, null at first, `work` must make the same calls on the same
  // handles and tensors: a backend may capture them in `graph` and then replay that instead of
  // calling `work`. A graph must go before the handles and tensors in it. Replaying gives what
  // calling gives; but a graph is of one number of rows, see StepRows().
  virtual void Replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work) {
    (void)graph;
    work();
  }
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_BACKEND_H_
