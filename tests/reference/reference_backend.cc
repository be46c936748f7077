#include "tests/reference/reference_backend.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "tests/reference/activation.h"
#include "tests/reference/attention.h"
#include "tests/reference/h3_layer.h"
#include "tests/reference/layer_state.h"
#include "tests/reference/linear.h"
#include "tests/reference/linear_attention.h"
#include "tests/reference/long_conv_ssm.h"
#include "tests/reference/matrix.h"
#include "tests/reference/sample.h"
#include "tests/reference/ssm_layer.h"
#include "tests/reference/training/training_reference.h"

namespace hippodrome {
namespace {

using reference::At;
using reference::ForEach;
using reference::IndexAt;
using reference::LinearMatrix;
using reference::Matrix;

// The value of a stored integer.
double LoadQuantized(const HostMatrix& m, int64_t index) {
  const int64_t row = index / m.cols, k = index % m.cols;
  const int64_t at = row * QuantizedGroups(m.cols, m.dtype) + k / QuantizedGroup(m.dtype);
  const double scale = ToFloat(m.scales[at]);
  if (m.dtype == DType::kI8) return scale * static_cast<const int8_t*>(m.data)[index];
  const auto* bytes = static_cast<const uint8_t*>(m.data) + row * RowBytes(m.dtype, m.cols);
  return scale * UnpackInt4(bytes[k / 2], k % 2 != 0);
}

double Load(const HostMatrix& m, int64_t index) {
  switch (m.dtype) {
    case DType::kI8:
    case DType::kI4:
      return LoadQuantized(m, index);
    case DType::kBF16:
      return ToFloat(static_cast<const BF16*>(m.data)[index]);
    case DType::kF16:
      return HalfToFloat(static_cast<const uint16_t*>(m.data)[index]);
    default:
      return static_cast<const float*>(m.data)[index];
  }
}

class ReferenceBackend final : public reference::TrainingReference {
 public:
  std::string name() const override { return "reference"; }

  OwnedTensor NewTensor(int64_t rows, int64_t cols) override {
    return New<double>(rows, cols, DType::kF64);
  }
  OwnedTensor NewActivations(int64_t rows, int64_t cols, DType /*weights*/) override {
    return NewTensor(rows, cols);
  }
  OwnedTensor NewIndices(int64_t rows, int64_t cols) override {
    return New<int32_t>(rows, cols, DType::kI32);
  }
  void Upload(std::span<const float> values, Tensor dst) override {
    ForEach(dst, [&](int64_t r, int64_t c) { At(dst, r, c) = values[r * dst.cols + c]; });
  }
  void UploadIndices(std::span<const int32_t> values, Tensor dst) override {
    ForEach(dst, [&](int64_t r, int64_t c) { IndexAt(dst, r, c) = values[r * dst.cols + c]; });
  }
  void Download(Tensor src, std::span<float> values) override {
    ForEach(src, [&](int64_t r, int64_t c) {
      values[r * src.cols + c] = static_cast<float>(At(src, r, c));
    });
  }
  void DownloadIndices(Tensor src, std::span<int32_t> values) override {
    ForEach(src, [&](int64_t r, int64_t c) { values[r * src.cols + c] = IndexAt(src, r, c); });
  }

  std::unique_ptr<LinearWeights> PackLinear(std::span<const HostMatrix> parts,
                                            DType dtype) override {
    Matrix w;
    w.cols = parts[0].cols;
    for (const HostMatrix& part : parts) {
      assert(part.cols == w.cols);
      w.rows += part.rows;
      for (int64_t i = 0; i < part.rows * part.cols; ++i) {
        w.values.push_back(reference::RoundTo(Load(part, i), dtype));
      }
      if (!IsQuantized(dtype) || IsQuantized(part.dtype)) continue;
      for (int64_t r = w.rows - part.rows; r < w.rows; ++r) {
        reference::ForEachGroup(std::span(w.values).subspan(r * w.cols, w.cols), dtype,
                                reference::RoundWeights);
      }
    }
    return std::make_unique<LinearMatrix>(std::move(w), dtype);
  }

  std::unique_ptr<H3Weights> PrepareH3(const H3Parameters& parameters, DType /*weights*/) override {
    return std::make_unique<reference::H3Layer>(parameters);
  }
  std::unique_ptr<RecurrentState> NewH3State(const H3Weights& weights, int64_t slots,
                                             DType type) override {
    return std::make_unique<reference::H3LayerState>(
        static_cast<const reference::H3Layer&>(weights), slots, type);
  }
  bool HasH3States(DType type) const override {
    return type == DType::kF32 || type == DType::kBF16;
  }
  void ResetSlot(RecurrentState& state, int64_t slot) override {
    static_cast<reference::LayerState&>(state).Reset(slot);
  }
  void CopySlot(RecurrentState& state, int64_t from, int64_t to) override {
    static_cast<reference::LayerState&>(state).Copy(from, to);
  }
  int64_t ExportSlot(const RecurrentState& state, int64_t slot, int64_t /*position*/,
                     std::span<const std::span<float>> arrays) override {
    static_cast<const reference::LayerState&>(state).Export(slot, arrays);
    return 0;
  }
  void ImportSlot(RecurrentState& state, int64_t slot, int64_t /*position*/,
                  std::span<const std::span<const float>> arrays) override {
    static_cast<reference::LayerState&>(state).Import(slot, arrays);
  }
  std::unique_ptr<KeyValuePages> NewKeyValuePages(const AttentionShape& shape, int64_t pages,
                                                  int64_t page_tokens, DType weights) override {
    return std::make_unique<reference::AttentionPages>(shape, pages, page_tokens,
                                                       KeyValueType(weights));
  }
  void ExportRows(const KeyValuePages& pages, std::span<const int32_t> page_table, int64_t first,
                  int64_t count, std::span<float> keys, std::span<float> values) override {
    const auto& from = static_cast<const reference::AttentionPages&>(pages);
    for (int64_t i = 0; i < count * from.d; ++i) {
      const int64_t at = from.Row(page_table, first + i / from.d) + i % from.d;
      keys[i] = static_cast<float>(from.k[at]);
      values[i] = static_cast<float>(from.v[at]);
    }
  }
  void ImportRows(KeyValuePages& pages, std::span<const int32_t> page_table, int64_t first,
                  int64_t count, std::span<const float> keys,
                  std::span<const float> values) override {
    auto& to = static_cast<reference::AttentionPages&>(pages);
    for (int64_t i = 0; i < count * to.d; ++i) {
      const int64_t at = to.Row(page_table, first + i / to.d) + i % to.d;
      to.k[at] = reference::RoundTo(keys[i], to.dtype);
      to.v[at] = reference::RoundTo(values[i], to.dtype);
    }
  }
  void CopyPage(KeyValuePages& pages, int32_t from, int32_t to) override {
    auto& p = static_cast<reference::AttentionPages&>(pages);
    const int64_t size = p.tokens_per_page * p.d;
    for (std::vector<double>* rows : {&p.k, &p.v}) {
      std::copy_n(rows->begin() + from * size, size, rows->begin() + to * size);
    }
  }

  void Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                 const AddedRows& positions, Tensor y) override {
    const Matrix& e = static_cast<const LinearMatrix&>(table).w;
    ForEach(y, [&](int64_t r, int64_t c) {
      const int32_t id = IndexAt(ids, 0, r);
      At(y, r, c) = (id < 0 ? 0 : e(id, c)) + Added(types, r, c) + Added(positions, r, c);
    });
  }

  void LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) override {
    for (int64_t r = 0; r < x.rows; ++r) {
      double mean = 0;
      for (int64_t c = 0; c < x.cols; ++c) mean += At(x, r, c) / static_cast<double>(x.cols);
      double variance = 0;
      for (int64_t c = 0; c < x.cols; ++c) {
        variance += std::pow(At(x, r, c) - mean, 2) / static_cast<double>(x.cols);
      }
      const double scale = 1 / std::sqrt(variance + epsilon);
      for (int64_t c = 0; c < x.cols; ++c) {
        At(y, r, c) = (At(x, r, c) - mean) * scale * At(gamma, 0, c) + At(beta, 0, c);
      }
    }
  }

  void Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) override {
    const auto& weights = static_cast<const LinearMatrix&>(w);
    ForEach(y, [&](int64_t r, int64_t c) {
      double value = reference::Activate(reference::LinearAt(x, weights, epilogue.bias, r, c),
                                         epilogue.activation);
      if (epilogue.gate.data != nullptr) value *= At(epilogue.gate, r, c);
      if (epilogue.residual.data != nullptr) value += At(epilogue.residual, r, c);
      At(y, r, c) = value;
    });
  }

  void Activate(Tensor x, const Epilogue& epilogue, Tensor y) override {
    ForEach(y, [&](int64_t r, int64_t c) {
      double value = reference::Activate(At(x, r, c), epilogue.activation);
      if (epilogue.gate.data != nullptr) value *= At(epilogue.gate, r, c);
      if (epilogue.residual.data != nullptr) value += At(epilogue.residual, r, c);
      At(y, r, c) = value;
    });
  }

  void H3Sequence(const H3Weights& /*weights*/, Tensor qkv, RecurrentState& state,
                  const SequenceParts& parts, Tensor o) override {
    auto& slots = static_cast<reference::H3LayerState&>(state);
    ForEachToken(parts, state, [&](const SequencePart& part, int64_t t) {
      const int64_t row = part.first_row + t;
      const bool transforms =
          part.start == 0 && part.tokens >= kTransformTokens && t + 1 < kTransformTokens;
      slots.Step(part.slot, part.start + t, transforms, qkv.Rows(row, 1), o.Rows(row, 1));
    });
  }

  void H3Step(const H3Weights& /*weights*/, Tensor qkv, RecurrentState& state, Tensor slots,
              Tensor positions, Tensor o) override {
    ForEachRow(slots, o, [&](int64_t slot, int64_t row) {
      static_cast<reference::H3LayerState&>(state).Step(slot, IndexAt(positions, 0, row), false,
                                                        qkv.Rows(row, 1), o.Rows(row, 1));
    });
  }

  std::unique_ptr<SsmWeights> PrepareSsm(const LongConvParameters& parameters,
                                         DType /*weights*/) override {
    return reference::MakeLongConvSsm(parameters, 0);
  }
  std::unique_ptr<RecurrentState> NewSsmState(const SsmWeights& weights, int64_t slots) override {
    return std::make_unique<reference::SsmLayerState>(
        static_cast<const reference::LongConvSsm&>(weights), slots);
  }

  void SsmSequence(const SsmWeights& /*weights*/, Tensor u, RecurrentState& state,
                   const SequenceParts& parts, Tensor y) override {
    ForEachToken(parts, state, [&](const SequencePart& part, int64_t t) {
      const int64_t row = part.first_row + t;
      static_cast<reference::SsmLayerState&>(state).Step(part.slot, u.Rows(row, 1), y.Rows(row, 1));
    });
  }

  void SsmStep(const SsmWeights& /*weights*/, Tensor u, RecurrentState& state, Tensor slots,
               Tensor y) override {
    ForEachRow(slots, y, [&](int64_t slot, int64_t row) {
      static_cast<reference::SsmLayerState&>(state).Step(slot, u.Rows(row, 1), y.Rows(row, 1));
    });
  }

  std::unique_ptr<RecurrentState> NewLinearAttentionState(const LinearAttentionShape& shape,
                                                          int64_t slots) override {
    return std::make_unique<reference::LinearAttentionState>(shape, slots);
  }

  void LinearAttentionSequence(const LinearAttentionShape& /*shape*/, Tensor qkv,
                               RecurrentState& state, const SequenceParts& parts,
                               Tensor o) override {
    ForEachToken(parts, state, [&](const SequencePart& part, int64_t t) {
      const int64_t row = part.first_row + t;
      static_cast<reference::LinearAttentionState&>(state).Step(part.slot, qkv.Rows(row, 1),
                                                                o.Rows(row, 1));
    });
  }

  void LinearAttentionStep(const LinearAttentionShape& /*shape*/, Tensor qkv, RecurrentState& state,
                           Tensor slots, Tensor o) override {
    ForEachRow(slots, o, [&](int64_t slot, int64_t row) {
      static_cast<reference::LinearAttentionState&>(state).Step(slot, qkv.Rows(row, 1),
                                                                o.Rows(row, 1));
    });
  }

  void AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                         KeyValuePages& pages, Tensor page_tables, const SequenceParts& parts,
                         Tensor o) override {
    auto& rows = static_cast<reference::AttentionPages&>(pages);
    for (size_t i = 0; i < parts.parts.size(); ++i) {
      const SequencePart& part = parts.parts[i];
      if (part.slot < 0) continue;
      for (int64_t t = 0; t < part.tokens; ++t) {
        const int64_t row = part.first_row + t;
        reference::AttendOne(shape, qkv.Rows(row, 1), inv_freq, rows,
                             page_tables.Rows(static_cast<int64_t>(i), 1),
                             shape.FirstSeen(part.start), part.start + t, o.Rows(row, 1));
      }
    }
  }

  void AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, KeyValuePages& pages,
                     Tensor page_tables, Tensor positions, Tensor o) override {
    for (int64_t i = 0; i < qkv.rows; ++i) {
      const int64_t position = IndexAt(positions, 0, i);
      if (position < 0) {
        reference::Zero(o.Rows(i, 1));
      } else {
        reference::AttendOne(shape, qkv.Rows(i, 1), inv_freq,
                             static_cast<reference::AttentionPages&>(pages), page_tables.Rows(i, 1),
                             shape.FirstSeen(position), position, o.Rows(i, 1));
      }
    }
  }

  std::unique_ptr<LongConvWeights> PrepareLongConv(const LongConvParameters& parameters,
                                                   int64_t longest, DType /*weights*/) override {
    return reference::MakeLongConvSsm(parameters, longest);
  }

  void LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences, Direction direction,
                Tensor y) override {
    const int64_t tokens = u.rows / sequences;
    for (int64_t b = 0; b < sequences; ++b) {
      static_cast<const reference::LongConvSsm&>(weights).Apply(
          u.Rows(b * tokens, tokens), direction, y.Rows(b * tokens, tokens));
    }
  }

  void BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                              Tensor o) override {
    for (int64_t b = 0; b < mask.rows; ++b) {
      reference::AttendAll(shape, qkv.Rows(b * mask.cols, mask.cols), mask.Rows(b, 1),
                           o.Rows(b * mask.cols, mask.cols));
    }
  }

  void MeanPool(Tensor x, Tensor mask, Tensor y) override {
    ForEach(y, [&](int64_t b, int64_t c) {
      double sum = 0;
      double count = 0;
      for (int64_t t = 0; t < mask.cols; ++t) {
        if (IndexAt(mask, b, t) == 0) continue;
        sum += At(x, b * mask.cols + t, c);
        count += 1;
      }
      At(y, b, c) = count == 0 ? 0 : sum / count;
    });
  }

  void GatherRows(Tensor x, Tensor rows, Tensor y) override {
    ForEach(y, [&](int64_t r, int64_t c) {
      const int32_t row = IndexAt(rows, 0, r);
      At(y, r, c) = row < 0 ? 0 : At(x, row, c);
    });
  }

  void Sample(Tensor logits, int64_t vocab, Tensor rows, const LogitAdjustments& adjustments,
              Tensor tokens) override {
    for (int64_t i = 0; i < logits.rows; ++i) {
      SamplingRow row;
      std::memcpy(static_cast<void*>(&row), &IndexAt(rows, i, 0), sizeof(row));
      Tensor changed = logits.Rows(i, 1);
      std::vector<double> values;
      if (adjustments.offsets.data != nullptr) {
        const int32_t begin = IndexAt(adjustments.offsets, 0, i);
        const int32_t end = IndexAt(adjustments.offsets, 0, i + 1);
        values = reference::Adjusted(changed, adjustments.entries.Rows(begin, end - begin));
        changed = {values.data(), DType::kF64, 1, logits.cols, logits.cols};
      }
      IndexAt(tokens, 0, i) = reference::SampleOne(changed, vocab, row.parameters, row.position);
    }
  }

  void LogProbabilities(Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                        Tensor log_probabilities) override {
    reference::LogProbabilities(logits, vocab, tokens, likeliest, log_probabilities);
  }

 private:
  // step(part, t) for token t of each part, and the captures on the way.
  template <typename Step>
  void ForEachToken(const SequenceParts& parts, RecurrentState& state, const Step& step) {
    std::span<const StateCapture> captures = parts.captures;
    for (size_t i = 0; i < parts.parts.size(); ++i) {
      const SequencePart& part = parts.parts[i];
      for (int64_t t = 0; t < part.tokens; ++t) {
        if (part.slot < 0) break;
        step(part, t);
        if (captures.empty() || captures.front().part != static_cast<int32_t>(i)) continue;
        if (captures.front().tokens != t + 1) continue;
        CopySlot(state, part.slot, captures.front().to);
        captures = captures.subspan(1);
      }
    }
  }

  // step(slot, row) for each row of a step; what is inert is zero in `out`.
  template <typename Step>
  static void ForEachRow(Tensor slots, Tensor out, const Step& step) {
    for (int64_t row = 0; row < out.rows; ++row) {
      const int32_t slot = IndexAt(slots, 0, row);
      slot < 0 ? reference::Zero(out.Rows(row, 1)) : step(slot, row);
    }
  }

  static double Added(const AddedRows& added, int64_t row, int64_t col) {
    if (added.table.data == nullptr || IndexAt(added.indices, 0, row) < 0) return 0;
    return At(added.table, IndexAt(added.indices, 0, row), col);
  }

  template <typename T>
  static OwnedTensor New(int64_t rows, int64_t cols, DType dtype) {
    auto memory = std::make_shared<std::vector<T>>(rows * cols);
    return {{memory->data(), dtype, rows, cols, cols}, memory};
  }
};

}  // namespace

std::unique_ptr<TrainingBackend> MakeReferenceBackend() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace hippodrome
