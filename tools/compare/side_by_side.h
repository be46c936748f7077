// Two backends side by side: the tensors and handles of both as one, and when their results differ.
#ifndef HIPPODROME_TOOLS_COMPARE_SIDE_BY_SIDE_H_
#define HIPPODROME_TOOLS_COMPARE_SIDE_BY_SIDE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/dtype.h"
#include "kernels/tensor.h"

namespace hippodrome {

// Pairs of tensors of equal size. Tensors may go on any thread.
class TwinTensors {
 public:
  // `expected`, whose memory from now on also holds `actual`, and the pair with it. Must not
  // outlive this object.
  OwnedTensor Join(OwnedTensor expected, OwnedTensor actual);

  // The rows and columns of the actual tensor that `view` has of its expected one; empty for an
  // empty view. REQUIRES: `view` is of a living tensor that Join() gave; its rows are whole rows of
  // that tensor apart, or it is a matrix of adjacent rows in a tensor of one row.
  Tensor Of(const Tensor& view) const;

 private:
  struct Twins {
    Tensor expected;
    Tensor actual;
  };
  mutable std::mutex mutex_;
  std::map<const char*, Twins> twins_;  // by the address of the expected tensor
};

// Largest |expected - actual| that is no difference, in 2-norms of the expected row, by the type
// that the actual row is stored in. f32: sums of some thousand products come out within 1e-6 of the
// norm, and a convolution whose sums cancel within some 1e-5; one wrong element among 50,000 of
// like size is 4e-3. bf16: a result is rounded by up to 2^-9 of an element, as are cached keys and
// values, and the operands of a convolution by 2^-11.
inline constexpr double kF32Tolerance = 1e-4;
inline constexpr double kBF16Tolerance = 1e-2;
constexpr double ToleranceOf(DType dtype) {
  return dtype == DType::kBF16 ? kBF16Tolerance : kF32Tolerance;
}

// Where two backends differ.
struct Difference {
  std::string operation;  // "h3_step", "linear 768x3072"
  int64_t ordinal = 0;    // operations before it
  int64_t norms = 0;      // layer norms before it in its pass: with them layers begin
  int64_t row = 0;
  int64_t column = 0;
  float expected = 0;
  float actual = 0;
};

// "operation 12 (h3_step, after 3 norms): row 0, column 7 is 1.5, expected 1.25"
std::string ToString(const Difference& difference);

// The element of a row with the largest error; an error of more than 1 is a difference.
struct WorstElement {
  int64_t column = 0;
  double error = 0;  // in units of the tolerance; infinite where just one is NaN
};
WorstElement FindWorst(std::span<const float> expected, std::span<const float> actual,
                       double tolerance);

// Sizes in bytes are those of `actual`.
template <class Handle>
struct Pair {
  std::unique_ptr<Handle> expected;
  std::unique_ptr<Handle> actual;
};

struct PairedLinear final : LinearWeights, Pair<LinearWeights> {
  explicit PairedLinear(Pair<LinearWeights> pair) : Pair(std::move(pair)) {}
  int64_t out() const override { return actual->out(); }
  int64_t in() const override { return actual->in(); }
  int64_t bytes() const override { return actual->bytes(); }
};

struct PairedH3Weights final : H3Weights, Pair<H3Weights> {
  explicit PairedH3Weights(Pair<H3Weights> pair) : Pair(std::move(pair)) {}
  int64_t bytes() const override { return actual->bytes(); }
};

struct PairedLongConv final : LongConvWeights, Pair<LongConvWeights> {
  explicit PairedLongConv(Pair<LongConvWeights> pair) : Pair(std::move(pair)) {}
  int64_t longest() const override { return actual->longest(); }
  int64_t bytes() const override { return actual->bytes(); }
};

struct PairedSsm final : SsmWeights, Pair<SsmWeights> {
  explicit PairedSsm(Pair<SsmWeights> pair) : Pair(std::move(pair)) {}
  int64_t bytes() const override { return actual->bytes(); }
};

struct PairedState final : RecurrentState, Pair<RecurrentState> {
  explicit PairedState(Pair<RecurrentState> pair) : Pair(std::move(pair)) {}
  int64_t slots() const override { return actual->slots(); }
  int64_t bytes_per_slot() const override { return actual->bytes_per_slot(); }
  int64_t bytes_per_step() const override { return actual->bytes_per_step(); }
  std::vector<StateArray> arrays() const override { return actual->arrays(); }
};

struct PairedPages final : KeyValuePages, Pair<KeyValuePages> {
  explicit PairedPages(Pair<KeyValuePages> pair) : Pair(std::move(pair)) {}
  int64_t pages() const override { return actual->pages(); }
  int64_t page_tokens() const override { return actual->page_tokens(); }
  int64_t bytes_per_page() const override { return actual->bytes_per_page(); }
};

// The pair inside a handle that a CheckingBackend made.
inline const Pair<LinearWeights>& Both(const LinearWeights& w) {
  return static_cast<const PairedLinear&>(w);
}
inline const Pair<H3Weights>& Both(const H3Weights& w) {
  return static_cast<const PairedH3Weights&>(w);
}
inline const Pair<LongConvWeights>& Both(const LongConvWeights& w) {
  return static_cast<const PairedLongConv&>(w);
}
inline const Pair<SsmWeights>& Both(const SsmWeights& w) {
  return static_cast<const PairedSsm&>(w);
}
inline const Pair<RecurrentState>& Both(const RecurrentState& s) {
  return static_cast<const PairedState&>(s);
}
inline const Pair<KeyValuePages>& Both(const KeyValuePages& p) {
  return static_cast<const PairedPages&>(p);
}

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMPARE_SIDE_BY_SIDE_H_
