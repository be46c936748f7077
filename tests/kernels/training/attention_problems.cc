// CausalAttentionBackward, BidirectionalAttentionBackward and CausalLinearAttentionBackward.
#include <cmath>

#include "tests/kernels/training/problem.h"

namespace hippodrome {
namespace {

struct AttentionCase {
  int64_t sequences, tokens;
  AttentionShape shape;
  bool large = false;
  AttentionDropout dropout = {};
};

TrainingProblem Base(const std::string& name, const AttentionCase& s) {
  const int64_t d = s.shape.heads * s.shape.head_dim;
  TrainingProblem p;
  p.name = name;
  p.operands = {RandomOperand("qkv", s.sequences * s.tokens, 3 * d, 1, -2, 2)};
  p.rows = s.sequences * s.tokens;
  p.cols = d;
  p.terms = static_cast<double>(s.tokens);
  p.large = s.large;
  return p;
}

TrainingProblem CausalProblem(const std::string& name, const AttentionCase& s) {
  TrainingProblem p = Base("CausalAttention" + name, s);
  const auto frequencies = [=](TrainingBackend& backend) {
    const int64_t half = s.shape.rotary_dim / 2;
    if (half == 0) return OwnedTensor();
    OwnedTensor inv_freq = backend.NewTensor(1, half);
    backend.Upload(GridValues(half, 2, 0, 1), inv_freq);
    return inv_freq;
  };
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) {
    backend.CausalAttention(s.shape, x[0], frequencies(backend), s.sequences, s.dropout, y);
    backend.Wait();
  };
  p.backward = [=](TrainingBackend& backend, Tensors x, Tensor dy, std::span<const Gradient> dx) {
    backend.CausalAttentionBackward(s.shape, x[0], frequencies(backend), s.sequences, s.dropout, dy,
                                    dx[0]);
    backend.Wait();
  };
  return p;
}

// The last sequence sees nothing where there are several.
TrainingProblem BidirectionalProblem(const std::string& name, const AttentionCase& s) {
  TrainingProblem p = Base("BidirectionalAttention" + name, s);
  const auto mask = [=](TrainingBackend& backend) {
    std::vector<int32_t> values;
    for (int64_t b = 0; b < s.sequences; ++b) {
      const bool none = b > 0 && b + 1 == s.sequences;
      for (int64_t t = 0; t < s.tokens; ++t) values.push_back(none || (b + t) % 3 == 2 ? 0 : 1);
    }
    return UploadIndices(backend, s.sequences, values);
  };
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) {
    backend.BidirectionalAttention(s.shape, x[0], mask(backend), y);
    backend.Wait();
  };
  p.backward = [=](TrainingBackend& backend, Tensors x, Tensor dy, std::span<const Gradient> dx) {
    backend.BidirectionalAttentionBackward(s.shape, x[0], mask(backend), dy, dx[0]);
    backend.Wait();
  };
  return p;
}

// At 0 the slope of elu has a corner: differences would see both sides of it.
TrainingProblem LinearAttentionProblem(const std::string& name, const AttentionCase& s) {
  TrainingProblem p = Base("CausalLinearAttention" + name, s);
  for (float& x : p.operands[0].values) {
    if (std::abs(x) < 0x1p-6f) x += 0x1p-5f;
  }
  const LinearAttentionShape shape = {s.shape.heads, s.shape.head_dim};
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) {
    backend.CausalLinearAttention(shape, x[0], s.sequences, y);
    backend.Wait();
  };
  p.backward = [=](TrainingBackend& backend, Tensors x, Tensor dy, std::span<const Gradient> dx) {
    backend.CausalLinearAttentionBackward(shape, x[0], s.sequences, dy, dx[0]);
    backend.Wait();
  };
  p.terms = static_cast<double>(s.tokens + s.shape.head_dim);
  return p;
}

}  // namespace

std::vector<TrainingProblem> AttentionProblems() {
  return {
      CausalProblem("OneToken", {2, 1, {1, 3, 0}}),
      CausalProblem("Plain", {1, 6, {2, 3, 0}}),
      CausalProblem("Rotary", {2, 5, {2, 6, 4}}),
      CausalProblem("AllRotary", {1, 7, {1, 4, 4}}),
      CausalProblem("Large", {3, 75, {3, 20, 8}, true}),
      CausalProblem("LargeHead", {2, 260, {1, 64, 64}, true}),
      CausalProblem("Dropout", {2, 5, {2, 4, 4}, false, {0.3, 11}}),
      CausalProblem("LargeDropout", {3, 75, {3, 20, 8}, true, {0.1, 0x123456789abcdefu}}),
      LinearAttentionProblem("OneToken", {2, 1, {1, 3, 0}}),
      LinearAttentionProblem("Plain", {2, 6, {2, 3, 0}}),
      LinearAttentionProblem("Blocks", {1, 18, {1, 33, 0}}),
      LinearAttentionProblem("Large", {3, 75, {3, 20, 0}, true}),
      LinearAttentionProblem("LargeHead", {2, 70, {1, 130, 0}, true}),
      BidirectionalProblem("OneToken", {1, 1, {2, 2, 0}}),
      BidirectionalProblem("Masked", {3, 5, {2, 3, 0}}),
      BidirectionalProblem("Large", {3, 75, {3, 20, 0}, true}),
      BidirectionalProblem("LargeHead", {2, 260, {1, 64, 0}, true}),
  };
}

}  // namespace hippodrome
