#include "engine/models/bigs/bigs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/passes/encoder_forward.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/random_model.h"
#include "tests/testing/test_backend.h"

namespace hippodrome::bigs_test {
namespace {

using Activation = Epilogue::Activation;

// Sequences of `length` tokens with padding behind all but the first.
EncoderInputs RandomInputs(const BigsConfig& config, int64_t batch, int64_t length) {
  EncoderInputs inputs{.batch = batch, .length = length};
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t tokens = std::max<int64_t>(1, length - b * (length / batch));
    const auto ids = RandomIds(tokens, config.vocab_size, static_cast<uint32_t>(b + 1));
    for (int64_t t = 0; t < length; ++t) {
      const bool real = t < tokens;
      inputs.ids.push_back(real ? ids[t] : static_cast<int32_t>(config.pad_token_id));
      inputs.types.push_back(real && t > tokens / 2 && config.type_vocab_size > 1 ? 1 : 0);
      inputs.mask.push_back(real ? 1 : 0);
    }
  }
  return inputs;
}

std::vector<float> Logits(Backend& backend, const Bigs& model, const EncoderInputs& inputs) {
  std::vector<float> logits;
  const absl::Status status =
      EncoderForward(backend, model, inputs, [&](std::span<const float> values) {
        logits.insert(logits.end(), values.begin(), values.end());
      });
  EXPECT_TRUE(status.ok()) << status;
  return logits;
}

struct Variant {
  std::string name;
  BigsConfig config;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

BigsConfig With(void (*change)(BigsConfig&)) {
  BigsConfig config = TinyBigsConfig();
  change(config);
  return config;
}

std::vector<Variant> Variants() {
  return {
      {"masked_lm", TinyBigsConfig()},
      {"tanh_layers_relu_head", With([](BigsConfig& c) {
         c.layer_gelu = Activation::kGeluTanh;
         c.hidden_act = Activation::kRelu;
       })},
      {"untied_silu_head", With([](BigsConfig& c) {
         c.tie_word_embeddings = false;
         c.hidden_act = Activation::kSilu;
       })},
      {"no_positions_one_type", With([](BigsConfig& c) {
         c.position_table = false;
         c.type_vocab_size = 1;
         c.layer_norm_eps = 1e-5;
       })},
      {"classifier", With([](BigsConfig& c) { c.head = EncoderHead::kSequenceClassification; })},
      {"regression_odd_sizes_mean", With([](BigsConfig& c) {
         c.head = EncoderHead::kSequenceClassification;
         c.labels = {"score"};
         c.hidden_size = 45;
         c.intermediate_size = 91;
         c.num_ssm = 5;
         c.vocab_size = 37;
         c.max_position_embeddings = 131;
         c.pool_padding = true;
       })},
      {"choice", With([](BigsConfig& c) { c.head = EncoderHead::kMultipleChoice; })},
      {"tagging", With([](BigsConfig& c) { c.head = EncoderHead::kTokenClassification; })},
      {"answers", With([](BigsConfig& c) { c.head = EncoderHead::kQuestionAnswering; })},
      {"heads", With([](BigsConfig& c) { c.num_ssm_heads = 4; })},
      {"odd_heads", With([](BigsConfig& c) {
         c.hidden_size = 45;
         c.num_ssm_heads = 9;
       })},
      {"gated_attention", With([](BigsConfig& c) {
         c.routing = EncoderRouting::kAttention;
         c.num_attention_heads = 4;
       })},
      {"stack_ssm", With([](BigsConfig& c) { c.block = EncoderBlock::kStack; })},
      {"stack_attention", With([](BigsConfig& c) {
         c.block = EncoderBlock::kStack;
         c.routing = EncoderRouting::kAttention;
         c.num_attention_heads = 2;
       })},
  };
}

class BigsTest : public testing::TestWithParam<Variant> {};

// f32 rounding through two layers on logits of up to 10.
constexpr double kTolerance = 1e-4;

TEST_P(BigsTest, AgreesWithTheReference) {
  HIPPODROME_TEST_BACKEND(backend);
  const BigsConfig& config = GetParam().config;
  const auto reference = MakeReferenceBackend();
  const auto model = MakeTestBigs(*backend, config);
  const auto truth = MakeTestBigs(*reference, config);
  for (const int64_t length : TestBackendIsSlow() ? std::vector<int64_t>{1, 17}
                                                  : std::vector<int64_t>{1, 9, 64, 131, 300}) {
    if (length > config.max_position_embeddings) continue;
    const EncoderInputs inputs = RandomInputs(config, 3, length);
    const auto actual = Logits(*backend, *model, inputs);
    const auto expected = Logits(*reference, *truth, inputs);
    ASSERT_EQ(actual.size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
      const double error = std::abs(actual[i] - expected[i]);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
    EXPECT_LE(worst, kTolerance) << length;
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, BigsTest, testing::ValuesIn(Variants()),
                         [](const auto& info) { return info.param.name; });

// In units of the mean size.
double MeanError(const std::vector<float>& actual, const std::vector<float>& expected) {
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    error += std::abs(actual[i] - expected[i]);
    size += std::abs(expected[i]);
  }
  return error / size;
}

TEST(BigsTest, Bf16WeightsStayCloseToTheReferenceWithTheSameWeights) {
  HIPPODROME_TEST_BACKEND(backend);
  const BigsConfig config = TinyBigsConfig();
  const auto reference = MakeReferenceBackend();
  const auto model = MakeTestBigs(*backend, config, DType::kBF16);
  const auto truth = MakeTestBigs(*reference, config, DType::kBF16);
  const EncoderInputs inputs = RandomInputs(config, 2, TestBackendIsSlow() ? 17 : 64);
  const auto actual = Logits(*backend, *model, inputs);
  const auto expected = Logits(*reference, *truth, inputs);
  // Both round activations to bf16 before each product; where f32 and f64 fall on different sides
  // of a rounding border, one activation differs by 2^-8 of its size. The mean tells a wrong kernel
  // from that noise. Devices store what a layer passes on as bf16: twice as many roundings.
  const bool stores_bf16 = backend->NewActivations(1, 1, DType::kBF16).view.dtype == DType::kBF16;
  EXPECT_LE(MeanError(actual, expected), stores_bf16 ? 0.02 : 0.005);
}

class BigsQuantizedTest : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, BigsQuantizedTest, testing::Values(DType::kI8, DType::kI4));

TEST_P(BigsQuantizedTest, StaysCloseToTheReferenceWithTheSameWeights) {
  HIPPODROME_TEST_BACKEND(backend);
  const BigsConfig config = TinyBigsConfig();
  const auto reference = MakeReferenceBackend();
  const auto model = MakeTestBigs(*backend, config, GetParam());
  const auto truth = MakeTestBigs(*reference, config, GetParam());
  const EncoderInputs inputs = RandomInputs(config, 2, 64);
  const auto actual = Logits(*backend, *model, inputs);
  const auto expected = Logits(*reference, *truth, inputs);
  // As with bf16; here an activation may differ by 1/127 of the largest of its group.
  EXPECT_LE(MeanError(actual, expected), 0.02);
}

TEST(BigsTest, RefusesInputsItCannotRun) {
  HIPPODROME_TEST_BACKEND(backend);
  const BigsConfig config = With([](BigsConfig& c) {
    c.head = EncoderHead::kSequenceClassification;
    c.max_position_embeddings = 4;
  });
  const auto model = MakeTestBigs(*backend, config);
  const auto run = [&](EncoderInputs inputs) {
    return EncoderForward(*backend, *model, inputs, [](std::span<const float>) {});
  };
  const EncoderInputs good{
      .batch = 1, .length = 2, .ids = {1, 39}, .types = {0, 1}, .mask = {1, 0}};
  EXPECT_TRUE(run(good).ok());
  const auto changed = [&](void (*change)(EncoderInputs&)) {
    EncoderInputs inputs = good;
    change(inputs);
    return run(inputs);
  };
  EXPECT_TRUE(absl::IsInvalidArgument(run({})));
  EXPECT_TRUE(absl::IsInvalidArgument(changed([](EncoderInputs& i) { i.ids[1] = 40; })));
  EXPECT_TRUE(absl::IsInvalidArgument(changed([](EncoderInputs& i) { i.ids[0] = -1; })));
  EXPECT_TRUE(absl::IsInvalidArgument(changed([](EncoderInputs& i) { i.types[0] = 2; })));
  EXPECT_TRUE(absl::IsInvalidArgument(changed([](EncoderInputs& i) { i.mask[0] = 2; })));
  EXPECT_TRUE(absl::IsInvalidArgument(changed([](EncoderInputs& i) { i.mask = {0, 0}; })));
  EXPECT_TRUE(absl::IsInvalidArgument(changed([](EncoderInputs& i) { i.types.pop_back(); })));
  EXPECT_TRUE(absl::IsOutOfRange(run(RandomInputs(config, 1, 5))));
}

TEST(BigsTest, NamesTheTensorThatIsMissing) {
  class Without final : public WeightsSource {
   public:
    absl::StatusOr<TensorView> Get(const std::string& name,
                                   const std::vector<int64_t>& shape) override {
      if (name.ends_with("bs4.kernel.C")) return absl::NotFoundError("no " + name);
      return weights_.Get(name, shape);
    }
    void Drop(const TensorView& tensor) override { weights_.Drop(tensor); }

   private:
    TestWeights weights_;
  };
  HIPPODROME_TEST_BACKEND(backend);
  Without source;
  const auto model = Bigs::Load(*backend, TinyBigsConfig(), source, DType::kF32);
  EXPECT_EQ(model.status().message(), "no bigs.encoder.layer.0.bs4.kernel.C");
}

}  // namespace
}  // namespace hippodrome::bigs_test
