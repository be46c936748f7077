// What serving allocates on a device, under the emulator: nothing, once it has seen as much.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "engine/encoder.h"
#include "engine/generator.h"
#include "engine/passes/prefill_chunk.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/cuda_on_cpu/runtime_watch.h"
#include "tests/testing/random_model.h"

namespace hippodrome::emulated_memory_test {
namespace {

using cuda_on_cpu::AllocationCount;

// `sequences` inputs of 9 tokens for the model's head, and one for an embedding.
std::vector<EncoderOutput> Answers(Encoder& encoder, int64_t sequences) {
  const bool for_tokens = AnswersForTokens(encoder.config().head);
  std::vector<EncoderRequest> requests;
  for (int64_t i = 0; i <= sequences; ++i) {
    EncoderRequest request{.ids = RandomIds(9, 40, static_cast<uint32_t>(i))};
    if (i == sequences) {
      request.task = EncoderTask::kEmbedding;
    } else if (for_tokens) {
      request.rows = {0, 3, 8};
    }
    requests.push_back(request);
  }
  std::vector<const EncoderRequest*> pointers;
  for (const EncoderRequest& request : requests) pointers.push_back(&request);
  return encoder.Run(pointers);
}

class EncoderMemoryTest : public testing::TestWithParam<EncoderHead> {};

TEST_P(EncoderMemoryTest, ABatchThatIsNotLargerAllocatesNothing) {
  CudaBackend backend;
  BigsConfig config = TinyBigsConfig();
  config.head = GetParam();
  config.pool_padding = true;
  const auto model = MakeTestBigs(backend, config);
  const auto encoder = *Encoder::Create(backend, *model, {});
  const auto first = Answers(*encoder, 3);
  const int64_t before = AllocationCount();
  const auto second = Answers(*encoder, 3);
  Answers(*encoder, 1);
  EXPECT_EQ(AllocationCount(), before);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].values, second[i].values) << i;
}

INSTANTIATE_TEST_SUITE_P(Heads, EncoderMemoryTest,
                         testing::Values(EncoderHead::kMaskedLm,
                                         EncoderHead::kSequenceClassification));

TEST(PrefillMemoryTest, PageTablesOfAnyWidthTakeMemoryThatIsThere) {
  CudaBackend backend;
  const auto model = MakeTestModel(backend, TinyConfig());
  const auto state = model->NewState(backend, 2, 20, 4);
  const SequenceState wide = *state->Reserve(7);
  const SequenceState narrow = *state->Reserve(5);
  PrefillChunk chunk(backend, *model);
  const std::vector<int32_t> prompt = RandomIds(9, 40, 1);
  const auto run = [&](const SequenceState& sequence) {
    const PrefillPart part{.tokens = prompt, .sequence = &sequence};
    chunk.Begin({&part, 1});
    while (!chunk.done()) chunk.RunLayer(*state);
  };
  run(wide);
  const int64_t before = AllocationCount();
  run(narrow);
  run(wide);
  EXPECT_EQ(AllocationCount(), before);
}

TEST(GeneratorMemoryTest, ARequestLikeOneBeforeAllocatesNothing) {
  CudaBackend backend;
  const auto model = MakeTestModel(backend, TinyConfig());
  const auto generator =
      *Generator::Create(backend, *model, {.max_sequences = 2, .key_value_bytes = 1 << 20});
  const auto run = [&] {
    const auto id =
        generator->Admit({.prompt = RandomIds(70, 40, 1), .max_tokens = 5, .ignore_eos = true});
    ASSERT_TRUE(id.ok()) << id.status();
    std::vector<TokenEvent> events;
    generator->Prefill(Generator::Clock::time_point::max(), events);
    while (generator->decoding() > 0) generator->Step(events);
    EXPECT_EQ(events.size(), 5u);
    generator->Release(*id);
  };
  run();
  const int64_t before = AllocationCount();
  run();
  EXPECT_EQ(AllocationCount(), before);
}

}  // namespace
}  // namespace hippodrome::emulated_memory_test
