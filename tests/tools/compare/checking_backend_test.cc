#include "tools/compare/checking_backend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/passes/decode_step.h"
#include "engine/passes/encoder_forward.h"
#include "engine/passes/forward.h"
#include "engine/passes/prefill_chunk.h"
#include "kernels/make_backend.h"
#include "tests/reference/published_state.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/random_model.h"
#include "tools/compare/forwarding_backend.h"

namespace hippodrome::checking_backend_test {
namespace {

// One number of one operation comes out wrong.
struct Fault {
  std::string operation;
  int64_t call = 0;  // of the operation
  int64_t row = 0;
  int64_t column = 0;
};

class FaultyBackend final : public ForwardingBackend {
 public:
  FaultyBackend(Backend& inner, Fault fault) : ForwardingBackend(inner), fault_(std::move(fault)) {}

  void Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) override {
    ForwardingBackend::Linear(x, w, epilogue, y);
    Spoil("linear", y);
  }
  void H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state, Tensor slots,
              Tensor positions, Tensor o) override {
    ForwardingBackend::H3Step(weights, qkv, state, slots, positions, o);
    Spoil("h3_step", o);
  }
  void AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                         KeyValuePages& pages, Tensor page_tables, const SequenceParts& parts,
                         Tensor o) override {
    ForwardingBackend::AttentionSequence(shape, qkv, inv_freq, pages, page_tables, parts, o);
    Spoil("attention_sequence", o);
  }
  void LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences, Direction direction,
                Tensor y) override {
    ForwardingBackend::LongConv(weights, u, sequences, direction, y);
    Spoil("long_conv", y);
  }
  void BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                              Tensor o) override {
    ForwardingBackend::BidirectionalAttention(shape, qkv, mask, o);
    Spoil("bidirectional_attention", o);
  }
  void MeanPool(Tensor x, Tensor mask, Tensor y) override {
    ForwardingBackend::MeanPool(x, mask, y);
    Spoil("mean_pool", y);
  }
  void GatherRows(Tensor x, Tensor rows, Tensor y) override {
    ForwardingBackend::GatherRows(x, rows, y);
    Spoil("gather_rows", y);
  }
  void Sample(Tensor logits, int64_t vocab, Tensor rows, const LogitAdjustments& adjustments,
              Tensor tokens) override {
    ForwardingBackend::Sample(logits, vocab, rows, adjustments, tokens);
    if (fault_.operation == "sample") UploadIndices(std::vector<int32_t>{39}, tokens.Cols(0, 1));
  }

 private:
  void Spoil(const std::string& operation, Tensor output) {
    if (operation != fault_.operation || calls_++ != fault_.call) return;
    const Tensor element = output.Rows(fault_.row, 1).Cols(fault_.column, 1);
    float value = 0;
    Download(element, {&value, 1});
    value = -value;
    Upload({&value, 1}, element);
  }

  Fault fault_;
  int64_t calls_ = 0;
};

// The first difference between the CPU and a faulty CPU, over tokens of the test model.
class CheckingBackendTest : public testing::Test {
 protected:
  std::optional<Difference> Run(const Fault& fault, const ForwardMode& mode) {
    FaultyBackend faulty(*inner_, fault);
    CheckingBackend backend(*expected_, faulty);
    const auto model = MakeTestModel(backend, TinyConfig());
    EXPECT_TRUE(
        Forward(backend, *model, RandomIds(9, 40, 1), mode, [](int64_t, std::span<const float>) {
        }).ok());
    operations_ = backend.operations();
    return backend.first_difference();
  }

  // The same of an encoder, over two inputs of six tokens.
  std::optional<Difference> RunEncoder(const Fault& fault, const BigsConfig& config) {
    FaultyBackend faulty(*inner_, fault);
    CheckingBackend backend(*expected_, faulty);
    const auto model = MakeTestBigs(backend, config);
    EncoderInputs inputs{.batch = 2, .length = 6, .ids = RandomIds(12, 40, 1)};
    inputs.types.assign(12, 0);
    inputs.mask.assign(12, 1);
    inputs.mask[11] = 0;
    EXPECT_TRUE(EncoderForward(backend, *model, inputs, [](std::span<const float>) {}).ok());
    operations_ = backend.operations();
    return backend.first_difference();
  }

  std::unique_ptr<Backend> expected_ = MakeCpuBackend({.threads = 1});
  std::unique_ptr<Backend> inner_ = MakeCpuBackend({.threads = 1});
  int64_t operations_ = 0;
};

constexpr int64_t kPerLayer = 7;  // norm, linear, mixer, linear, norm, linear, linear
constexpr int64_t kPerPass = 3 * kPerLayer + 3;  // embedding, norm, head

TEST_F(CheckingBackendTest, EqualBackendsDoNotDiffer) {
  EXPECT_FALSE(Run({}, {}).has_value());
  EXPECT_EQ(operations_, kPerPass);
  EXPECT_FALSE(Run({}, {.step = true}).has_value());
  EXPECT_EQ(operations_, 9 * kPerPass);
}

TEST_F(CheckingBackendTest, TheFaultyStepIsNamed) {
  // The test model has H3 layers 0 and 2: call 5 is that of layer 2 for the third token.
  const auto difference = Run({"h3_step", 5, 0, 17}, {.step = true});
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->operation, "h3_step");
  EXPECT_EQ(difference->norms, 5);
  EXPECT_EQ(difference->ordinal, 2 * kPerPass + 1 + 2 * kPerLayer + 2);
  EXPECT_EQ(difference->row, 0);
  EXPECT_EQ(difference->column, 17);
  EXPECT_EQ(difference->actual, -difference->expected);
  EXPECT_TRUE(ToString(*difference)
                  .starts_with("operation 65 (h3_step, after 5 norms): row 0, column 17 is "))
      << ToString(*difference);
}

TEST_F(CheckingBackendTest, FaultsOfPrefillAreNamed) {
  const auto attention = Run({"attention_sequence", 1, 2, 30}, {.chunk = 4});
  ASSERT_TRUE(attention.has_value());
  EXPECT_EQ(attention->operation, "attention_sequence");
  EXPECT_EQ(attention->norms, 3);
  EXPECT_EQ(attention->row, 2);
  EXPECT_EQ(attention->column, 30);
  const auto head = Run({"linear", 12, 8, 47}, {});
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->operation, "linear 32x48");
  EXPECT_EQ(head->norms, 7);
  EXPECT_EQ(head->row, 8);
}

// The linear operations of a gated layer come as V, F and B; U1; U, gated by U1; O, gated by V in
// its place; and x, to which it adds in place.
constexpr int64_t kPerEncoderLayer = 8;  // norm, linear, (conv, linear) twice, linear, linear
constexpr int64_t kLinearPerEncoderLayer = 5;

TEST_F(CheckingBackendTest, EqualBackendsDoNotDifferInEncoders) {
  BigsConfig config = TinyBigsConfig();
  EXPECT_FALSE(RunEncoder({}, config).has_value());
  // Embedding and its norm; the rows, transform, norm and decoder of masked LM.
  EXPECT_EQ(operations_, 2 + 2 * kPerEncoderLayer + 4);
  config.block = EncoderBlock::kStack;
  config.head = EncoderHead::kSequenceClassification;
  EXPECT_FALSE(RunEncoder({}, config).has_value());
  config.routing = EncoderRouting::kAttention;
  config.num_attention_heads = 4;
  EXPECT_FALSE(RunEncoder({}, config).has_value());
}

TEST_F(CheckingBackendTest, FaultsOfAnEncoderAreNamed) {
  BigsConfig config = TinyBigsConfig();
  const auto conv = RunEncoder({"long_conv", 3, 7, 12}, config);
  ASSERT_TRUE(conv.has_value());
  EXPECT_EQ(conv->operation, "long_conv backward");
  EXPECT_EQ(conv->norms, 3);  // that of the embeddings, and one for each layer
  EXPECT_EQ(conv->ordinal, 2 + kPerEncoderLayer + 4);
  EXPECT_EQ(conv->row, 7);
  EXPECT_EQ(conv->column, 12);
  const auto picked = RunEncoder({"gather_rows", 0, 11, 3}, config);
  ASSERT_TRUE(picked.has_value());
  EXPECT_EQ(picked->operation, "gather_rows");
  config.head = EncoderHead::kSequenceClassification;
  const auto pooled = RunEncoder({"mean_pool", 0, 1, 3}, config);
  ASSERT_TRUE(pooled.has_value());
  EXPECT_EQ(pooled->operation, "mean_pool");
  EXPECT_EQ(pooled->row, 1);
  config.routing = EncoderRouting::kAttention;
  config.num_attention_heads = 4;
  const auto attention = RunEncoder({"bidirectional_attention", 1, 5, 31}, config);
  ASSERT_TRUE(attention.has_value());
  EXPECT_EQ(attention->operation, "bidirectional_attention");
  EXPECT_EQ(attention->norms, 3);
}

// Gates and residuals, which may be the output itself, are made equal before either backend runs: a
// fault in what becomes a gate is not taken for one of the gated product.
TEST_F(CheckingBackendTest, AFaultInAGateIsThatOfItsProduct) {
  for (int64_t linear = 0; linear < 2 * kLinearPerEncoderLayer; ++linear) {
    FaultyBackend faulty(*inner_, {"linear", linear, 4, 9});
    CheckingBackend backend(*expected_, faulty);
    const auto model = MakeTestBigs(backend, TinyBigsConfig());
    EncoderInputs inputs{.batch = 1, .length = 6, .ids = RandomIds(6, 40, 1)};
    inputs.types.assign(6, 0);
    inputs.mask.assign(6, 1);
    ASSERT_TRUE(EncoderForward(backend, *model, inputs, [](std::span<const float>) {}).ok());
    int differing = 0;
    for (const auto& [operation, error] : backend.worst()) differing += error > 1 ? 1 : 0;
    EXPECT_EQ(differing, 1) << linear;
  }
}

TEST_F(CheckingBackendTest, WrongTokensAreNamed) {
  FaultyBackend faulty(*inner_, {"sample"});
  CheckingBackend backend(*expected_, faulty);
  const OwnedTensor logits = backend.NewTensor(2, 40);
  const OwnedTensor rows = backend.NewIndices(2, kSamplingColumns);
  const OwnedTensor tokens = backend.NewIndices(1, 2);
  const std::vector<SamplingRow> greedy(2, {{.temperature = 0}, 0});
  backend.UploadIndices(AsIndices(greedy), rows);
  backend.Sample(logits, 40, rows, {}, tokens);
  ASSERT_TRUE(backend.first_difference().has_value());
  EXPECT_EQ(ToString(*backend.first_difference()),
            "operation 0 (sample, after 0 norms): row 0, column 0 is 39, expected 0");
}

// Parts of a chunk in layouts that only batches have: several sequences, one of which has left, and
// the last row of each.
TEST_F(CheckingBackendTest, BatchesAreCompared) {
  CheckingBackend backend(*expected_, *inner_);
  const auto model = MakeTestModel(backend, TinyConfig());
  const auto state = model->NewState(backend, 3, 3, 16);
  const auto ids = RandomIds(8, 40, 2);
  std::vector<SequenceState> sequences;
  std::vector<PrefillPart> parts;
  for (int i = 0; i < 3; ++i) sequences.push_back(*state->Reserve(1));
  for (const SequenceState& sequence : sequences)
    parts.push_back({.tokens = ids, .sequence = &sequence});
  PrefillChunk chunk(backend, *model);
  chunk.Begin(parts);
  chunk.RunLayer(*state);
  chunk.Drop(1);
  while (!chunk.done()) chunk.RunLayer(*state);
  const OwnedTensor logits = backend.NewTensor(3, 48);
  chunk.LastLogits(logits);
  EXPECT_FALSE(backend.first_difference().has_value()) << ToString(*backend.first_difference());
}

// A state that goes from one sequence to another, and rows of pages.
TEST_F(CheckingBackendTest, StatesAndRowsAreCompared) {
  const auto reference = MakeReferenceBackend();
  CheckingBackend backend(*reference, *inner_);
  const auto model = MakeTestModel(backend, TinyConfig());
  const auto state = model->NewState(backend, 2, 6, 16);
  const SequenceState from = *state->Reserve(3), to = *state->Reserve(3);
  const auto ids = RandomIds(24, 40, 2);  // whole blocks: none is pending
  PrefillChunk chunk(backend, *model);
  const PrefillPart part = {.tokens = ids, .sequence = &from};
  chunk.Begin({&part, 1});
  while (!chunk.done()) chunk.RunLayer(*state);
  for (const auto& layer : state->layers().recurrent) {
    if (layer == nullptr) continue;
    const StateValues values = Exported(backend, *layer, from.slot, 24);
    backend.ImportSlot(*layer, to.slot, 24, values.Spans());
    EXPECT_GT(backend.worst().at("export_slot"), 0);
  }
  const auto d = static_cast<size_t>(model->config().d_model);
  for (const auto& pages : state->layers().attention) {
    if (pages == nullptr) continue;
    std::vector<float> keys(24 * d), values(24 * d);
    backend.ExportRows(*pages, from.pages, 0, 24, keys, values);
    backend.ImportRows(*pages, to.pages, 0, 16, keys, values);
    backend.CopyPage(*pages, from.pages[1], to.pages[1]);
    EXPECT_EQ(backend.worst().count("export_rows"), 1u);
  }
  const PrefillPart rest = {.tokens = ids, .start = 24, .sequence = &to};
  chunk.Begin({&rest, 1});
  while (!chunk.done()) chunk.RunLayer(*state);
  EXPECT_FALSE(backend.first_difference().has_value()) << ToString(*backend.first_difference());
}

// Against double precision: the tolerances have room for rounding, and no more than they need. What
// is stored as bf16 is off by up to 2^-9 of an element, a fifth of its tolerance.
TEST_F(CheckingBackendTest, RoundingIsNoDifference) {
  const auto reference = MakeReferenceBackend();
  CheckingBackend backend(*reference, *inner_);
  for (const DType weights : {DType::kF32, DType::kBF16}) {
    const auto model = MakeTestModel(backend, TinyConfig(), weights);
    for (const ForwardMode mode : {ForwardMode{}, ForwardMode{.step = true}}) {
      ASSERT_TRUE(
          Forward(backend, *model, RandomIds(40, 40, 3), mode, [](int64_t, std::span<const float>) {
          }).ok());
    }
  }
  BigsConfig config = TinyBigsConfig();
  for (const EncoderRouting routing : {EncoderRouting::kSsm, EncoderRouting::kAttention}) {
    config.routing = routing;
    config.num_attention_heads = 4;
    const auto model = MakeTestBigs(backend, config);
    EncoderInputs inputs{.batch = 1, .length = 300, .ids = RandomIds(300, 40, 1)};
    inputs.types.assign(300, 0);
    inputs.mask.assign(300, 1);
    ASSERT_TRUE(EncoderForward(backend, *model, inputs, [](std::span<const float>) {}).ok());
  }
  EXPECT_FALSE(backend.first_difference().has_value()) << ToString(*backend.first_difference());
  for (const auto& [operation, error] : backend.worst()) EXPECT_LT(error, 0.2) << operation;
  EXPECT_EQ(backend.name(), "cpu against reference");
}

}  // namespace
}  // namespace hippodrome::checking_backend_test
