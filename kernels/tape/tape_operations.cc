// Each operation of a tape: run it, and note how to go back over it.
#include <algorithm>
#include <cassert>
#include <vector>

#include "kernels/tape/tape.h"
#include "kernels/tape/trained_handles.h"

namespace hippodrome {
namespace {

// Handles were made by this tape, hence the casts.
const std::shared_ptr<TrainedLinear>& Trained(const LinearWeights& w) {
  return static_cast<const TapedLinear&>(w).trained();
}

const std::shared_ptr<TrainedH3>& Trained(const H3Weights& w) {
  return static_cast<const TapedH3&>(w).trained();
}

const std::shared_ptr<TrainedLongConv>& Trained(const LongConvWeights& w) {
  return static_cast<const TapedLongConv&>(w).trained();
}

// From position 0, of equal length, without captures.
[[maybe_unused]] bool AreWhole(const SequenceParts& parts) {
  return parts.captures.empty() &&
         std::all_of(parts.parts.begin(), parts.parts.end(), [&](const SequencePart& part) {
           return part.start == 0 && part.tokens == parts.parts.front().tokens;
         });
}

}  // namespace

OwnedTensor Tape::TrainedIds(Tensor ids) {
  std::vector<int32_t> values(static_cast<size_t>(ids.cols));
  backend_.DownloadIndices(ids, values);
  for (int32_t& id : values) {
    if (id == options_.padding_id) id = -1;
  }
  OwnedTensor trained = backend_.NewIndices(1, ids.cols);
  backend_.UploadIndices(values, trained);
  return trained;
}

void Tape::Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                     const AddedRows& positions, Tensor y) {
  const auto& w = Trained(table);
  memory_.BeforeWrite(y);
  backend_.Embedding(*w->weights, ids, types, positions, y);
  const Handles adds = Expect(w.get(), {types.table, positions.table});
  if (!recording()) return;
  Record(adds, [=, this, trained_ids = TrainedIds(ids)] {
    const Tensor dy = memory_.Take(y);
    if (dy.data == nullptr) return;
    backend_.ScatterRows(dy, trained_ids, w->gradient);
    for (const AddedRows& added : {types, positions}) {
      const Tensor dtable = memory_.OfParameter(added.table);
      if (dtable.data != nullptr) backend_.ScatterRows(dy, added.indices, dtable);
    }
    memory_.Unset(y);
  });
}

void Tape::LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  const auto saved = recording() ? memory_.Save(x) : nullptr;
  memory_.BeforeWrite(y);
  backend_.LayerNorm(x, gamma, beta, epsilon, y);
  const Handles adds = Expect(nullptr, {gamma, beta});
  if (!recording()) return;
  Record(adds, [=, this] {
    const Tensor dy = memory_.Take(y);
    if (dy.data == nullptr) return;
    const bool in_place = x.data == y.data;
    const Gradient dx = in_place ? Gradient{dy} : memory_.Into(x);
    backend_.LayerNormBackward(saved->view, gamma, epsilon, dy, dx, memory_.OfParameter(gamma),
                               memory_.OfParameter(beta));
    if (!in_place) memory_.Unset(y);
  });
}

void Tape::Linear(Tensor x, const LinearWeights& weights, const Epilogue& epilogue, Tensor y) {
  const auto& w = Trained(weights);
  const auto saved_x = recording() ? memory_.Save(x) : nullptr;
  const auto saved_gate = recording() ? memory_.Save(epilogue.gate) : nullptr;
  memory_.BeforeWrite(y);
  backend_.Linear(x, *w->weights, epilogue, y);
  const Handles adds = Expect(w.get(), {epilogue.bias});
  if (!recording()) return;
  Record(adds, [=, this] {
    const Tensor dy = memory_.Take(y);
    if (dy.data == nullptr) return;
    const bool has_residual = epilogue.residual.data != nullptr;
    const bool residual_is_y = epilogue.residual.data == y.data;
    if (has_residual && !residual_is_y) {
      const Gradient dresidual = memory_.Into(epilogue.residual);
      dresidual.add ? backend_.Add(dy, dresidual.tensor) : backend_.Copy(dy, dresidual.tensor);
    }
    const bool has_gate = epilogue.gate.data != nullptr;
    const bool gate_is_y = epilogue.gate.data == y.data;
    assert(!(has_gate && gate_is_y && residual_is_y));
    LinearGradients gradients = {.weights = w->gradient,
                                 .bias = memory_.OfParameter(epilogue.bias)};
    if (has_gate) gradients.gate = gate_is_y ? Gradient{dy} : memory_.Into(epilogue.gate);
    gradients.x = memory_.Into(x);
    Epilogue before = epilogue;
    before.gate = saved_gate->view;
    before.residual = {};
    backend_.LinearBackward(saved_x->view, *w->weights, before, dy, gradients);
    if (!(has_residual && residual_is_y) && !(has_gate && gate_is_y)) memory_.Unset(y);
  });
}

void Tape::Activate(Tensor x, const Epilogue& epilogue, Tensor y) {
  const auto saved_x = recording() ? memory_.Save(x) : nullptr;
  const auto saved_gate = recording() ? memory_.Save(epilogue.gate) : nullptr;
  memory_.BeforeWrite(y);
  backend_.Activate(x, epilogue, y);
  if (!recording()) return;
  record_.push_back([=, this] {
    const Tensor dy = memory_.Take(y);
    if (dy.data == nullptr) return;
    const bool residual_is_y = epilogue.residual.data == y.data;
    const bool x_is_y = x.data == y.data;
    assert(epilogue.gate.data != y.data && !(x_is_y && residual_is_y));
    if (epilogue.residual.data != nullptr && !residual_is_y) {
      const Gradient dresidual = memory_.Into(epilogue.residual);
      dresidual.add ? backend_.Add(dy, dresidual.tensor) : backend_.Copy(dy, dresidual.tensor);
    }
    Gradient dgate;
    if (epilogue.gate.data != nullptr) dgate = memory_.Into(epilogue.gate);
    Epilogue before = epilogue;
    before.gate = saved_gate->view;
    before.residual = {};
    backend_.ActivateBackward(saved_x->view, before, dy, x_is_y ? Gradient{dy} : memory_.Into(x),
                              dgate);
    if (!residual_is_y && !x_is_y) memory_.Unset(y);
  });
}

void Tape::LinearCrossEntropy(Tensor x, const LinearWeights& weights, Tensor bias, Tensor labels,
                              double scale, Tensor losses) {
  const auto& w = Trained(weights);
  if (!recording()) {
    backend_.LinearCrossEntropy(x, *w->weights, bias, labels, scale, losses, nullptr);
    return;
  }
  const LinearGradients gradients = {
      .x = memory_.Into(x), .weights = w->gradient, .bias = memory_.OfParameter(bias)};
  backend_.LinearCrossEntropy(x, *w->weights, bias, labels, scale, losses, &gradients);
  Record(Expect(w.get(), {bias}), [] {});  // it has added already
}

void Tape::H3Sequence(const H3Weights& weights, Tensor qkv, RecurrentState& /*state*/,
                      const SequenceParts& parts, Tensor o) {
  assert(AreWhole(parts));
  const auto& w = Trained(weights);
  const auto sequences = static_cast<int64_t>(parts.parts.size());
  const auto saved = recording() ? memory_.Save(qkv) : nullptr;
  memory_.BeforeWrite(o);
  backend_.H3Convolution(*w->weights, qkv, sequences, o);
  const Handles adds = Expect(w.get(), {});
  if (!recording()) return;
  Record(adds, [=, this] {
    const Tensor d_o = memory_.Take(o);
    if (d_o.data == nullptr) return;
    backend_.H3ConvolutionBackward(*w->weights, saved->view, sequences, d_o, memory_.Into(qkv),
                                   *w->sums);
    memory_.Unset(o);
  });
}

void Tape::LinearAttentionSequence(const LinearAttentionShape& shape, Tensor qkv,
                                   RecurrentState& /*state*/, const SequenceParts& parts,
                                   Tensor o) {
  assert(AreWhole(parts));
  const auto sequences = std::ssize(parts.parts);
  const auto saved = recording() ? memory_.Save(qkv) : nullptr;
  memory_.BeforeWrite(o);
  backend_.CausalLinearAttention(shape, qkv, sequences, o);
  if (!recording()) return;
  record_.push_back([=, this] {
    const Tensor d_o = memory_.Take(o);
    if (d_o.data == nullptr) return;
    backend_.CausalLinearAttentionBackward(shape, saved->view, sequences, d_o, memory_.Into(qkv));
    memory_.Unset(o);
  });
}

void Tape::AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                             KeyValuePages& /*pages*/, Tensor /*page_tables*/,
                             const SequenceParts& parts, Tensor o) {
  assert(AreWhole(parts));
  const auto sequences = static_cast<int64_t>(parts.parts.size());
  const auto saved = recording() ? memory_.Save(qkv) : nullptr;
  AttentionDropout dropout;
  if (mode_ != Mode::kOff && options_.attention_dropout > 0) {
    dropout = {.p = options_.attention_dropout, .seed = NextDropoutSeed()};
  }
  memory_.BeforeWrite(o);
  backend_.CausalAttention(shape, qkv, inv_freq, sequences, dropout, o);
  if (!recording()) return;
  record_.push_back([=, this] {
    const Tensor d_o = memory_.Take(o);
    if (d_o.data == nullptr) return;
    backend_.CausalAttentionBackward(shape, saved->view, inv_freq, sequences, dropout, d_o,
                                     memory_.Into(qkv));
    memory_.Unset(o);
  });
}

void Tape::LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences,
                    Direction direction, Tensor y) {
  Convolve(Trained(weights), u, sequences, direction, y);
}

void Tape::SsmSequence(const SsmWeights& weights, Tensor u, RecurrentState& /*state*/,
                       const SequenceParts& parts, Tensor y) {
  assert(AreWhole(parts));
  Convolve(static_cast<const TapedSsm&>(weights).trained(), u, std::ssize(parts.parts),
           Direction::kForward, y);
}

void Tape::Convolve(const std::shared_ptr<TrainedLongConv>& w, Tensor u, int64_t sequences,
                    Direction direction, Tensor y) {
  const auto saved = recording() ? memory_.Save(u) : nullptr;
  memory_.BeforeWrite(y);
  backend_.LongConv(*w->weights, u, sequences, direction, y);
  const Handles adds = Expect(w.get(), {});
  if (!recording()) return;
  Record(adds, [=, this] {
    const Tensor dy = memory_.Take(y);
    if (dy.data == nullptr) return;
    backend_.LongConvBackward(*w->weights, saved->view, sequences, direction, dy, memory_.Into(u),
                              *w->sums);
    memory_.Unset(y);
  });
}

void Tape::BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask, Tensor o) {
  const auto saved = recording() ? memory_.Save(qkv) : nullptr;
  memory_.BeforeWrite(o);
  backend_.BidirectionalAttention(shape, qkv, mask, o);
  if (!recording()) return;
  record_.push_back([=, this] {
    const Tensor d_o = memory_.Take(o);
    if (d_o.data == nullptr) return;
    backend_.BidirectionalAttentionBackward(shape, saved->view, mask, d_o, memory_.Into(qkv));
    memory_.Unset(o);
  });
}

void Tape::MeanPool(Tensor x, Tensor mask, Tensor y) {
  memory_.BeforeWrite(y);
  backend_.MeanPool(x, mask, y);
  if (!recording()) return;
  record_.push_back([=, this] {
    const Tensor dy = memory_.Take(y);
    if (dy.data == nullptr) return;
    backend_.MeanPoolBackward(mask, dy, memory_.Into(x));
    memory_.Unset(y);
  });
}

void Tape::GatherRows(Tensor x, Tensor rows, Tensor y) {
  memory_.BeforeWrite(y);
  backend_.GatherRows(x, rows, y);
  if (!recording()) return;
  record_.push_back([=, this] {
    const Tensor dy = memory_.Take(y);
    if (dy.data == nullptr) return;
    backend_.ScatterRows(dy, rows, memory_.AddInto(x));
    memory_.Unset(y);
  });
}

uint64_t Tape::NextDropoutSeed() {
  // Seeds of a forward are far apart from those of the next.
  return seed_ * 0x9E3779B97F4A7C15u + drops_++;
}

void Tape::Dropout(DropoutSite site, Tensor x) {
  const double p = options_.dropout[static_cast<size_t>(site)];
  if (mode_ == Mode::kOff || p == 0) return;
  const uint64_t seed = NextDropoutSeed();
  memory_.BeforeWrite(x);
  backend_.Drop(p, seed, x);
  if (!recording()) return;
  record_.push_back([=, this] {
    const Tensor dx = memory_.Take(x);
    if (dx.data != nullptr) backend_.Drop(p, seed, dx);
  });
}

}  // namespace hippodrome
