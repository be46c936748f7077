// What a sequence keeps goes from processors to devices and back: backends of other arithmetic, and
// other layouts, go on from it within the error bound.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/h3/h3_state.h"
#include "kernels/make_backend.h"
#include "tests/kernels/cpu/h3/h3_problem.h"
#include "tests/kernels/cuda/attention/attention_problem.h"
#include "tests/reference/linear_attention.h"
#include "tests/reference/published_state.h"

namespace hippodrome::state_exchange_test {
namespace {

using Values = std::vector<float>;

struct Place {
  std::string backend;
  DType weights;
  int64_t slots = 2;

  bool narrow() const { return backend == "cuda" && weights == DType::kBF16; }
};

std::unique_ptr<Backend> MakeBackend(const Place& place) {
  if (place.backend == "cuda") return std::make_unique<CudaBackend>();
  return MakeCpuBackend({.threads = 1});
}

// One sequence in one layer at one place. Its tokens are rows of qkv, exact in bf16.
class Layer {
 public:
  Layer(const Place& place, Values qkv, int64_t d)
      : place_(place), backend_(MakeBackend(place)), qkv_(std::move(qkv)), d_(d) {}

  Backend& backend() { return *backend_; }
  const Place& place() const { return place_; }

  // Runs `operation(qkv, part, o)` on tokens [first, first + count).
  template <typename Operation>
  Values Run(int64_t first, int64_t count, const Operation& operation) {
    const OwnedTensor in = backend_->NewActivations(count, 3 * d_, place_.weights);
    const OwnedTensor out = backend_->NewActivations(count, d_, place_.weights);
    backend_->Upload(std::span(qkv_).subspan(static_cast<size_t>(first * 3 * d_),
                                             static_cast<size_t>(count * 3 * d_)),
                     in.view);
    operation(in.view,
              SequencePart{.slot = kSlot,
                           .tokens = static_cast<int32_t>(count),
                           .start = static_cast<int32_t>(first)},
              out.view);
    Values o(static_cast<size_t>(count * d_));
    backend_->Download(out.view, o);
    return o;
  }

  // kI32 [1, n].
  OwnedTensor Indices(const std::vector<int32_t>& values) {
    OwnedTensor indices = backend_->NewIndices(1, static_cast<int64_t>(values.size()));
    backend_->UploadIndices(values, indices.view);
    return indices;
  }

  static constexpr int32_t kSlot = 1;

 private:
  Place place_;
  std::unique_ptr<Backend> backend_;
  Values qkv_;
  int64_t d_;
};

class H3Layer {
 public:
  H3Layer(const Place& place, const H3Parameters& parameters, const Values& qkv)
      : layer_(place, qkv, parameters.d_model),
        weights_(layer_.backend().PrepareH3(parameters, place.weights)),
        state_(layer_.backend().NewH3State(*weights_, place.slots, DType::kF32)) {}

  Values Sequence(int64_t first, int64_t count) {
    return layer_.Run(first, count, [&](Tensor qkv, const SequencePart& part, Tensor o) {
      layer_.backend().H3Sequence(*weights_, qkv, *state_, {.parts = {&part, 1}, .captures = {}},
                                  o);
    });
  }
  Values Step(int64_t token) {
    return layer_.Run(token, 1, [&](Tensor qkv, const SequencePart& part, Tensor o) {
      const OwnedTensor slots = layer_.Indices({part.slot});
      const OwnedTensor positions = layer_.Indices({part.start});
      layer_.backend().H3Step(*weights_, qkv, *state_, slots.view, positions.view, o);
    });
  }
  StateValues Export(int64_t position) {
    return Exported(layer_.backend(), *state_, Layer::kSlot, position);
  }
  void Import(const StateValues& values, int64_t position) {
    layer_.backend().ImportSlot(*state_, Layer::kSlot, position, values.Spans());
  }

 private:
  Layer layer_;
  std::unique_ptr<H3Weights> weights_;
  std::unique_ptr<RecurrentState> state_;
};

class LinearAttentionLayer {
 public:
  LinearAttentionLayer(const Place& place, const LinearAttentionShape& shape, const Values& qkv)
      : layer_(place, qkv, shape.heads * shape.head_dim),
        shape_(shape),
        state_(layer_.backend().NewLinearAttentionState(shape, place.slots)) {}

  Values Sequence(int64_t first, int64_t count) {
    return layer_.Run(first, count, [&](Tensor qkv, const SequencePart& part, Tensor o) {
      layer_.backend().LinearAttentionSequence(shape_, qkv, *state_,
                                               {.parts = {&part, 1}, .captures = {}}, o);
    });
  }
  Values Step(int64_t token) {
    return layer_.Run(token, 1, [&](Tensor qkv, const SequencePart& part, Tensor o) {
      const OwnedTensor slots = layer_.Indices({part.slot});
      layer_.backend().LinearAttentionStep(shape_, qkv, *state_, slots.view, o);
    });
  }
  StateValues Export(int64_t position) {
    return Exported(layer_.backend(), *state_, Layer::kSlot, position);
  }
  void Import(const StateValues& values, int64_t position) {
    layer_.backend().ImportSlot(*state_, Layer::kSlot, position, values.Spans());
  }

 private:
  Layer layer_;
  LinearAttentionShape shape_;
  std::unique_ptr<RecurrentState> state_;
};

class AttentionLayer {
 public:
  AttentionLayer(const Place& place, const AttentionShape& shape, const Values& qkv)
      : layer_(place, qkv, shape.heads * shape.head_dim),
        shape_(shape),
        pages_(layer_.backend().NewKeyValuePages(shape, 6, 64, place.weights)) {
    const Values inv_freq = cuda::InverseFrequencies(shape);
    inv_freq_ = layer_.backend().NewTensor(1, static_cast<int64_t>(inv_freq.size()));
    layer_.backend().Upload(inv_freq, inv_freq_.view);
    page_table_ = layer_.Indices(table_);
  }

  Values Sequence(int64_t first, int64_t count) {
    return layer_.Run(first, count, [&](Tensor qkv, const SequencePart& part, Tensor o) {
      layer_.backend().AttentionSequence(shape_, qkv, inv_freq_.view, *pages_, page_table_.view,
                                         {.parts = {&part, 1}, .captures = {}}, o);
    });
  }
  Values Step(int64_t token) {
    return layer_.Run(token, 1, [&](Tensor qkv, const SequencePart& part, Tensor o) {
      const OwnedTensor positions = layer_.Indices({part.start});
      layer_.backend().AttentionStep(shape_, qkv, inv_freq_.view, *pages_, page_table_.view,
                                     positions.view, o);
    });
  }
  struct Rows {
    Values keys;
    Values values;
    bool operator==(const Rows&) const = default;
  };
  Rows Export(int64_t count) {
    const auto floats = static_cast<size_t>(count * shape_.heads * shape_.head_dim);
    Rows rows = {Values(floats), Values(floats)};
    layer_.backend().ExportRows(*pages_, table_, 0, count, rows.keys, rows.values);
    return rows;
  }
  void Import(const Rows& rows, int64_t count) {
    layer_.backend().ImportRows(*pages_, table_, 0, count, rows.keys, rows.values);
  }

 private:
  Layer layer_;
  AttentionShape shape_;
  std::unique_ptr<KeyValuePages> pages_;
  std::vector<int32_t> table_ = {4, 1, 5};
  OwnedTensor inv_freq_;
  OwnedTensor page_table_;
};

const Place kCpu = {"cpu", DType::kF32};
const Place kCpuBF16 = {"cpu", DType::kBF16};

struct Journey {
  Place from;
  Place to;
};

std::string Text(const Place& place) {
  return place.backend + " " + Name(place.weights) + ", " + std::to_string(place.slots) + " slots";
}

void PrintTo(const Journey& journey, std::ostream* os) {
  *os << Text(journey.from) << " to " << Text(journey.to);
}

class StateExchangeTest : public testing::TestWithParam<Journey> {
 protected:
  bool narrow() const { return GetParam().from.narrow() || GetParam().to.narrow(); }
};

constexpr int64_t kAhead = cuda::kLookaheadSlots;
INSTANTIATE_TEST_SUITE_P(
    Journeys, StateExchangeTest,
    testing::Values(Journey{kCpu, {"cuda", DType::kF32}},               //
                    Journey{kCpu, {"cuda", DType::kF32, kAhead}},       //
                    Journey{kCpu, {"cuda", DType::kBF16}},              //
                    Journey{kCpuBF16, {"cuda", DType::kBF16, kAhead}},  //
                    Journey{{"cuda", DType::kF32}, kCpu},               //
                    Journey{{"cuda", DType::kF32, kAhead}, kCpu},       //
                    Journey{{"cuda", DType::kBF16}, kCpuBF16},          //
                    Journey{{"cuda", DType::kBF16, kAhead}, kCpu},      //
                    Journey{{"cuda", DType::kBF16, kAhead}, {"cuda", DType::kF32}},
                    Journey{{"cuda", DType::kF32}, {"cuda", DType::kBF16, kAhead}}));

// Numbers that bf16 holds.
Values RandomTokens(int64_t tokens, int64_t d) {
  Values qkv = RandomValues(tokens * 3 * d, 5);
  for (float& x : qkv) x = ToFloat(ToBF16(x));
  return qkv;
}

// A prompt and steps in one place, then steps and a sequence in the other.
TEST_P(StateExchangeTest, H3GoesOnElsewhere) {
  constexpr int64_t kPrompt = 290, kPosition = 301, kSteps = 20, kTokens = 360;
  for (const int64_t head_dim : {1, 2}) {
    const H3Shape shape = {.d_model = 6, .head_dim = head_dim};
    const RandomH3 random(shape);
    const Values qkv = RandomTokens(kTokens, shape.d_model);
    H3Layer from(GetParam().from, random.parameters(), qkv);
    from.Sequence(0, kPrompt);
    for (int64_t t = kPrompt; t < kPosition; ++t) from.Step(t);
    const StateValues state = from.Export(kPosition);

    H3Layer to(GetParam().to, random.parameters(), qkv);
    to.Import(state, kPosition);
    EXPECT_EQ(to.Export(kPosition)[0], state[0]);
    if (state[2].empty()) {  // else devices take in what is pending
      EXPECT_EQ(to.Export(kPosition), state);
    }
    Values o;
    for (int64_t t = kPosition; t < kPosition + kSteps; ++t) {
      const Values row = to.Step(t);
      o.insert(o.end(), row.begin(), row.end());
    }
    const Values rest = to.Sequence(kPosition + kSteps, kTokens - kPosition - kSteps);
    o.insert(o.end(), rest.begin(), rest.end());

    const H3Expectation expected = ExpectedH3(random.parameters(), qkv);
    const double roundoff = kUnitRoundoff * (6 + std::log2(static_cast<double>(kTokens)));
    for (size_t i = 0; i < o.size(); ++i) {
      const double y = expected.o[static_cast<size_t>(kPosition * shape.d_model) + i];
      const double scale = expected.o_scale[i % static_cast<size_t>(shape.d_model)];
      const double rounding = GetParam().to.narrow() ? 0x1.02p-8 * std::abs(y) : 0;
      ASSERT_NEAR(o[i], y, (narrow() ? 80 : 2) * roundoff * scale + rounding) << i;
    }
  }
}

// What is added up in f32 errs as kernels/backend.h says; |v| <= 1.
TEST_P(StateExchangeTest, LinearAttentionGoesOnElsewhere) {
  constexpr int64_t kPrompt = 50, kPosition = 55, kSteps = 5, kTokens = 80;
  for (const LinearAttentionShape& shape :
       {LinearAttentionShape{2, 5}, LinearAttentionShape{1, 40}}) {
    const int64_t d = shape.heads * shape.head_dim;
    const Values qkv = RandomTokens(kTokens, d);
    LinearAttentionLayer from(GetParam().from, shape, qkv);
    from.Sequence(0, kPrompt);
    for (int64_t t = kPrompt; t < kPosition; ++t) from.Step(t);
    const StateValues state = from.Export(kPosition);

    LinearAttentionLayer to(GetParam().to, shape, qkv);
    to.Import(state, kPosition);
    EXPECT_EQ(to.Export(kPosition), state);
    Values o;
    for (int64_t t = kPosition; t < kPosition + kSteps; ++t) {
      const Values row = to.Step(t);
      o.insert(o.end(), row.begin(), row.end());
    }
    const Values rest = to.Sequence(kPosition + kSteps, kTokens - kPosition - kSteps);
    o.insert(o.end(), rest.begin(), rest.end());

    reference::LinearAttentionState reference(shape, 1);
    const double error = Gamma(2 * (kTokens + shape.head_dim + 10));
    for (int64_t t = 0; t < kTokens; ++t) {
      std::vector<double> row(qkv.begin() + t * 3 * d, qkv.begin() + (t + 1) * 3 * d);
      std::vector<double> expected(static_cast<size_t>(d));
      reference.Step(0, {row.data(), DType::kF64, 1, 3 * d, 3 * d},
                     {expected.data(), DType::kF64, 1, d, d});
      for (int64_t c = 0; t >= kPosition && c < d; ++c) {
        const double y = expected[static_cast<size_t>(c)];
        const double rounding = GetParam().to.narrow() ? 0x1.02p-8 * std::abs(y) : 0;
        ASSERT_NEAR(o[static_cast<size_t>((t - kPosition) * d + c)], y, error + rounding)
            << "token " << t << " column " << c;
      }
    }
  }
}

TEST_P(StateExchangeTest, AttentionGoesOnElsewhere) {
  constexpr int64_t kPrompt = 100, kPosition = 105, kSteps = 10, kTokens = 140;
  const cuda::AttentionCase c = {.dtype = narrow() ? DType::kBF16 : DType::kF32,
                                 .shape = {.heads = 2, .head_dim = 16, .rotary_dim = 8},
                                 .tokens = kTokens};
  const Values qkv = RandomTokens(kTokens, c.width());
  AttentionLayer from(GetParam().from, c.shape, qkv);
  from.Sequence(0, kPrompt);
  for (int64_t t = kPrompt; t < kPosition; ++t) from.Step(t);
  const AttentionLayer::Rows rows = from.Export(kPosition);

  AttentionLayer to(GetParam().to, c.shape, qkv);
  to.Import(rows, kPosition);
  if (!GetParam().to.narrow() || GetParam().from.narrow()) {
    EXPECT_EQ(to.Export(kPosition), rows);
  }
  Values o;
  for (int64_t t = kPosition; t < kPosition + kSteps; ++t) {
    const Values row = to.Step(t);
    o.insert(o.end(), row.begin(), row.end());
  }
  const Values rest = to.Sequence(kPosition + kSteps, kTokens - kPosition - kSteps);
  o.insert(o.end(), rest.begin(), rest.end());

  const cuda::AttentionReference reference(c, qkv);
  for (int64_t t = kPosition; t < kTokens; ++t) {
    const std::vector<double> expected = reference.Row(0, t);
    for (size_t j = 0; j < expected.size(); ++j) {
      ASSERT_NEAR(o[static_cast<size_t>((t - kPosition) * c.width()) + j], expected[j],
                  reference.tolerance())
          << "token " << t << " column " << j;
    }
  }
}

}  // namespace
}  // namespace hippodrome::state_exchange_test
