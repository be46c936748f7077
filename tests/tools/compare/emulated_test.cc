// The CUDA backend, emulated, against the CPU's, operation by operation: what `hippodrome compare`
// does on a device.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/model_directory.h"
#include "engine/passes/encoder_forward.h"
#include "engine/passes/forward.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/test_backend.h"
#include "tools/compare/checking_backend.h"
#include "tools/convert/convert.h"

namespace hippodrome::emulated_test {
namespace {

const std::string kDirectory = std::string(HIPPODROME_TESTDATA) + "/h3_golden";

class EmulatedTest : public testing::TestWithParam<DType> {};

TEST_P(EmulatedTest, NoOperationDiffers) {
  HIPPODROME_TEST_BACKEND(actual);
  const auto expected = MakeCpuBackend({.threads = 2});
  CheckingBackend backend(*expected, *actual);
  const auto loaded = LoadDecoderDirectory(backend, kDirectory, GetParam());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const std::vector<int32_t> ids = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  for (const ForwardMode mode : {ForwardMode{}, ForwardMode{.step = true}}) {
    ASSERT_TRUE(
        Forward(backend, *loaded->model, ids, mode, [](int64_t, std::span<const float>) {}).ok());
  }
  EXPECT_GT(backend.operations(), 100);
  EXPECT_FALSE(backend.first_difference()) << ToString(*backend.first_difference());
}

TEST_P(EmulatedTest, NoOperationOfAnEncoderDiffers) {
  HIPPODROME_TEST_BACKEND(actual);
  const auto expected = MakeCpuBackend({.threads = 2});
  CheckingBackend backend(*expected, *actual);
  EncoderInputs inputs{.batch = 2, .length = 9, .ids = RandomIds(18, 40, 1)};
  inputs.types = RandomIds(18, 2, 2);
  inputs.mask.assign(18, 1);
  inputs.mask.back() = 0;
  BigsConfig config = TinyBigsConfig();
  config.head = EncoderHead::kSequenceClassification;
  config.num_attention_heads = 4;
  for (const EncoderRouting routing : {EncoderRouting::kSsm, EncoderRouting::kAttention}) {
    config.routing = routing;
    const auto model = MakeTestBigs(backend, config, GetParam());
    ASSERT_TRUE(EncoderForward(backend, *model, inputs, [](std::span<const float>) {}).ok());
  }
  EXPECT_GT(backend.operations(), 30);
  EXPECT_FALSE(backend.first_difference()) << ToString(*backend.first_difference());
}

TEST(EmulatedQuantizedTest, BecomesBF16WhereNothingElseIsAskedFor) {
  HIPPODROME_TEST_BACKEND(cuda);
  const TemporaryDirectory directory;
  const std::string model = directory.path() + "/int8";
  ASSERT_TRUE(
      Convert({.source = kDirectory, .out = model, .matrix_dtype = DType::kI8}, [](int64_t,
                                                                                   int64_t) {
      }).ok());
  const auto loaded = LoadDecoderDirectory(*cuda, model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->weights, DType::kBF16);
}

INSTANTIATE_TEST_SUITE_P(Weights, EmulatedTest, testing::ValuesIn(kWeightTypes),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace hippodrome::emulated_test
