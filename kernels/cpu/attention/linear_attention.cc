#include "kernels/cpu/attention/linear_attention.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/attention/outer_scan.h"
#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {
namespace {

constexpr auto kEpsilon = static_cast<float>(kLinearAttentionEpsilon);
// Vectors of a head of so many tokens stay in the second cache.
constexpr int64_t kHeadTokens = 64;

int64_t WidthOf(const LinearAttentionShape& shape) {
  return (shape.head_dim + kOuterColumns - 1) / kOuterColumns * kOuterColumns;
}

// S and z of a head.
int64_t HeadFloats(const LinearAttentionShape& shape) {
  return (shape.head_dim + 1) * WidthOf(shape);
}

// One head of the rows of a matrix [rows, parts * d].
class HeadColumns {
 public:
  HeadColumns(const LinearAttentionShape& shape, int64_t head, const Tensor& matrix)
      : d_(shape.heads * shape.head_dim), first_(head * shape.head_dim), matrix_(matrix) {}

  float* Row(int64_t row, int64_t part) const { return F32Row(matrix_, row) + part * d_ + first_; }

 private:
  int64_t d_;
  int64_t first_;
  Tensor matrix_;
};

void CopyFilled(const float* from, int64_t n, int64_t width, float* to) {
  std::fill(std::copy_n(from, n, to), to + width, 0.0f);
}

// One head of some sequences, a few tokens at a time.
class HeadScan {
 public:
  HeadScan(const LinearAttentionShape& shape, int64_t head, Tensor qkv, Tensor o)
      : n_(shape.head_dim), width_(WidthOf(shape)), qkv_(shape, head, qkv), o_(shape, head, o) {
    const int64_t rows = kHeadTokens * width_;
    Parts scratch(ThreadScratch<float>(ScratchUse::kLinearAttention, 4 * rows + HeadFloats(shape)));
    for (float** part : {&q_, &k_, &v_, &out_}) *part = scratch.Take(rows);
    empty_ = scratch.Take(HeadFloats(shape));
  }

  // The state of a head, in scratch memory and empty.
  float* EmptyState() {
    std::fill_n(empty_, (n_ + 1) * width_, 0.0f);
    return empty_;
  }

  // The state of the head goes on by `tokens` tokens from `row` on.
  void Rows(int64_t row, int64_t tokens, float* state) {
    for (const int64_t end = row + tokens; row < end; row += kHeadTokens) {
      const int64_t count = std::min(kHeadTokens, end - row);
      for (int64_t t = 0; t < count; ++t) Load(row + t, t * width_);
      RunOuterScan({.rows = n_,
                    .width = width_,
                    .tokens = count,
                    .step = width_,
                    .x = k_,
                    .y = v_,
                    .w = q_,
                    .matrix = state,
                    .out = out_});
      for (int64_t t = 0; t < count; ++t) Divide(t * width_, state + n_ * width_, row + t);
    }
  }

 private:
  void Load(int64_t row, int64_t at) {
    LinearAttentionFeatures(qkv_.Row(row, 0), n_, q_ + at);
    LinearAttentionFeatures(qkv_.Row(row, 1), n_, k_ + at);
    CopyFilled(qkv_.Row(row, 2), n_, width_, v_ + at);
  }

  void Divide(int64_t at, float* z, int64_t row) {
    const float denominator = AddAndDot(k_ + at, q_ + at, width_, z) + kEpsilon;
    float* o = o_.Row(row, 0);
    for (int64_t i = 0; i < n_; ++i) o[i] = out_[at + i] / denominator;
  }

  const int64_t n_;
  const int64_t width_;
  const HeadColumns qkv_;
  const HeadColumns o_;
  float *q_, *k_, *v_, *out_, *empty_;
};

// One head of one sequence. q and k stand for their features until the end.
class LinearAttentionGradient {
 public:
  // qkv, d_o, dqkv: of the sequence.
  LinearAttentionGradient(const LinearAttentionShape& shape, int64_t head, const Tensor& qkv,
                          const Tensor& d_o, const Gradient& dqkv)
      : n_(shape.head_dim),
        width_(WidthOf(shape)),
        tokens_(qkv.rows),
        qkv_(shape, head, qkv),
        d_o_(shape, head, d_o),
        dqkv_(shape, head, dqkv.tensor),
        add_(dqkv.add) {
    const int64_t rows = tokens_ * width_;
    Parts scratch(
        ThreadScratch<float>(ScratchUse::kLinearAttention, 7 * rows + HeadFloats(shape) + tokens_));
    for (float** part : {&q_, &k_, &v_, &dn_, &dq_, &dk_, &dv_}) *part = scratch.Take(rows);
    matrix_ = scratch.Take(n_ * width_);
    sum_ = scratch.Take(width_);
    dd_ = scratch.Take(tokens_);
  }

  void Run() {
    for (int64_t t = 0; t < tokens_; ++t) Load(t);
    Scan(v_, k_, dn_, dq_, false);  // S_t do_t
    Normalize();
    Scan(q_, dn_, k_, dv_, true);  // dv = G^T k
    Scan(dn_, q_, v_, dk_, true);  // G v
    AddNormalizer();
    for (int64_t t = 0; t < tokens_; ++t) Store(t);
  }

 private:
  void Load(int64_t t) {
    const int64_t at = t * width_;
    LinearAttentionFeatures(qkv_.Row(t, 0), n_, q_ + at);
    LinearAttentionFeatures(qkv_.Row(t, 1), n_, k_ + at);
    CopyFilled(qkv_.Row(t, 2), n_, width_, v_ + at);
    CopyFilled(d_o_.Row(t, 0), n_, width_, dn_ + at);
  }

  // From an empty matrix.
  void Scan(const float* x, const float* y, const float* w, float* out, bool backwards) {
    const int64_t first = backwards ? (tokens_ - 1) * width_ : 0;
    std::fill_n(matrix_, n_ * width_, 0.0f);
    RunOuterScan({.rows = n_,
                  .width = width_,
                  .tokens = tokens_,
                  .step = backwards ? -width_ : width_,
                  .x = x + first,
                  .y = y + first,
                  .w = w + first,
                  .matrix = matrix_,
                  .out = out + first});
  }

  // dN = do / D, dD = -(do . N) / D^2 with do . N = q . S do, and dq = S dN + z dD.
  void Normalize() {
    std::fill_n(sum_, width_, 0.0f);
    for (int64_t t = 0; t < tokens_; ++t) {
      const int64_t at = t * width_;
      const float scale = 1 / (AddAndDot(k_ + at, q_ + at, width_, sum_) + kEpsilon);
      float along = 0;
      for (int64_t i = 0; i < n_; ++i) along += q_[at + i] * dq_[at + i];
      dd_[t] = -along * scale * scale;
      for (int64_t i = 0; i < n_; ++i) {
        dq_[at + i] = dq_[at + i] * scale + sum_[i] * dd_[t];
        dn_[at + i] *= scale;
      }
    }
  }

  // dk = G v + g.
  void AddNormalizer() {
    std::fill_n(sum_, width_, 0.0f);
    for (int64_t t = tokens_ - 1; t >= 0; --t) {
      const int64_t at = t * width_;
      for (int64_t i = 0; i < n_; ++i) {
        sum_[i] += q_[at + i] * dd_[t];
        dk_[at + i] += sum_[i];
      }
    }
  }

  // From the gradients of features to those of q and k.
  void Store(int64_t t) {
    const int64_t at = t * width_;
    for (int64_t i = 0; i < n_; ++i) {
      dq_[at + i] *= std::min(q_[at + i], 1.0f);
      dk_[at + i] *= std::min(k_[at + i], 1.0f);
    }
    const float* parts[] = {dq_ + at, dk_ + at, dv_ + at};
    for (int64_t part = 0; part < 3; ++part) {
      float* to = dqkv_.Row(t, part);
      for (int64_t i = 0; i < n_; ++i) to[i] = parts[part][i] + (add_ ? to[i] : 0.0f);
    }
  }

  const int64_t n_;
  const int64_t width_;
  const int64_t tokens_;
  const HeadColumns qkv_;
  const HeadColumns d_o_;
  const HeadColumns dqkv_;
  const bool add_;
  float *q_, *k_, *v_, *dn_, *dq_, *dk_, *dv_;  // [tokens, width]
  float* matrix_;                               // [head_dim, width]
  float* sum_;                                  // [width]
  float* dd_;                                   // [tokens]
};

void CheckShapes([[maybe_unused]] const LinearAttentionShape& shape,
                 [[maybe_unused]] const Tensor& qkv, [[maybe_unused]] const Tensor& o) {
  assert(qkv.cols == 3 * shape.heads * shape.head_dim && 3 * o.cols == qkv.cols);
  assert(o.rows == qkv.rows);
}

}  // namespace

LinearAttentionSlots::LinearAttentionSlots(const LinearAttentionShape& shape, int64_t slots)
    : RecurrentSlots(slots, shape.heads * HeadFloats(shape)), shape_(shape) {}

float* LinearAttentionSlots::Head(int64_t slot, int64_t head) const {
  return Slot(slot) + head * HeadFloats(shape_);
}

void LinearAttentionSlots::CopyHead(int64_t from, int64_t to, int64_t head) {
  std::copy_n(Head(from, head), HeadFloats(shape_), Head(to, head));
}

int64_t LinearAttentionSlots::Export(int64_t slot, int64_t /*position*/,
                                     std::span<const std::span<float>> arrays) const {
  const int64_t n = shape_.head_dim;
  assert(arrays.size() == 2 && std::ssize(arrays[0]) == shape_.heads * n * n);
  float* kv = arrays[0].data();
  float* z = arrays[1].data();
  for (int64_t head = 0; head < shape_.heads; ++head) {
    const float* row = Head(slot, head);
    for (int64_t i = 0; i < n; ++i, row += WidthOf(shape_)) kv = std::copy_n(row, n, kv);
    z = std::copy_n(row, n, z);
  }
  return 0;
}

// What fills rows up is zero, as it was.
void LinearAttentionSlots::Import(int64_t slot, int64_t /*position*/,
                                  std::span<const std::span<const float>> arrays) {
  const int64_t n = shape_.head_dim;
  assert(arrays.size() == 2 && std::ssize(arrays[0]) == shape_.heads * n * n);
  const float* kv = arrays[0].data();
  const float* z = arrays[1].data();
  for (int64_t head = 0; head < shape_.heads; ++head) {
    float* row = Head(slot, head);
    for (int64_t i = 0; i < n; ++i, row += WidthOf(shape_), kv += n) {
      CopyFilled(kv, n, WidthOf(shape_), row);
    }
    CopyFilled(z, n, WidthOf(shape_), row);
    z += n;
  }
}

void LinearAttentionSequence(ThreadPool& pool, const LinearAttentionShape& shape, Tensor qkv,
                             LinearAttentionSlots& state, const SequenceParts& parts, Tensor o) {
  CheckShapes(shape, qkv, o);
  pool.Run(std::ssize(parts.parts) * shape.heads, [&](int64_t index, int) {
    const int64_t part = index / shape.heads;
    const int64_t head = index % shape.heads;
    const SequencePart& of = parts.parts[static_cast<size_t>(part)];
    if (of.slot < 0) return;
    HeadScan scan(shape, head, qkv, o);
    int64_t done = 0;
    for (const StateCapture& capture : CapturesOf(parts, part)) {
      scan.Rows(of.first_row + done, capture.tokens - done, state.Head(of.slot, head));
      state.CopyHead(of.slot, capture.to, head);
      done = capture.tokens;
    }
    scan.Rows(of.first_row + done, of.tokens - done, state.Head(of.slot, head));
  });
}

void LinearAttentionStep(ThreadPool& pool, const LinearAttentionShape& shape, Tensor qkv,
                         LinearAttentionSlots& state, Tensor slots, Tensor o) {
  CheckShapes(shape, qkv, o);
  assert(slots.cols == qkv.rows);
  const int32_t* slot = I32Row(slots, 0);
  pool.Run(qkv.rows * shape.heads, [&](int64_t index, int) {
    const int64_t row = index / shape.heads;
    const int64_t head = index % shape.heads;
    if (slot[row] >= 0) HeadScan(shape, head, qkv, o).Rows(row, 1, state.Head(slot[row], head));
  });
  for (int64_t row = 0; row < o.rows; ++row) {
    if (slot[row] < 0) std::fill_n(F32Row(o, row), o.cols, 0.0f);
  }
}

void CausalLinearAttention(ThreadPool& pool, const LinearAttentionShape& shape, Tensor qkv,
                           int64_t sequences, Tensor o) {
  CheckShapes(shape, qkv, o);
  assert(sequences > 0 && qkv.rows % sequences == 0);
  const int64_t tokens = qkv.rows / sequences;
  pool.Run(sequences * shape.heads, [&](int64_t index, int) {
    HeadScan scan(shape, index % shape.heads, qkv, o);
    scan.Rows(index / shape.heads * tokens, tokens, scan.EmptyState());
  });
}

void CausalLinearAttentionBackward(ThreadPool& pool, const LinearAttentionShape& shape, Tensor qkv,
                                   int64_t sequences, Tensor d_o, Gradient dqkv) {
  if (dqkv.tensor.data == nullptr) return;
  CheckShapes(shape, qkv, d_o);
  assert(sequences > 0 && qkv.rows % sequences == 0);
  assert(dqkv.tensor.rows == qkv.rows && dqkv.tensor.cols == qkv.cols);
  const int64_t tokens = qkv.rows / sequences;
  pool.Run(sequences * shape.heads, [&](int64_t index, int) {
    const int64_t first = index / shape.heads * tokens;
    LinearAttentionGradient(shape, index % shape.heads, qkv.Rows(first, tokens),
                            d_o.Rows(first, tokens), {dqkv.tensor.Rows(first, tokens), dqkv.add})
        .Run();
  });
}

}  // namespace hippodrome::cpu
