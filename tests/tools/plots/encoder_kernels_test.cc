#include "tools/plots/encoder_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/checkpoint/safetensors.h"
#include "engine/config/bigs_config.h"
#include "tests/testing/random_model.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::encoder_kernels_test {
namespace {

// A model directory with nothing but the SSMs of two layers, of one mode each: A = -1, dt = 1 and
// C = 1, 2, .. in the order of layers, directions and heads.
class EncoderKernelsTest : public testing::Test {
 protected:
  void Write(int64_t heads) {
    BigsConfig config = TinyBigsConfig();
    config.num_ssm = 1;
    config.num_ssm_heads = heads;
    directory_.Write("config.json", ToJson(config));
    specs_.clear();
    values_.clear();
    float c = 0;
    for (const std::string layer : {"0", "1"}) {
      for (const std::string direction : {"fs4", "bs4"}) {
        const std::string prefix = "bigs.encoder.layer." + layer + "." + direction + ".";
        std::vector<float> cs;
        for (int64_t head = 0; head < heads; ++head) cs.insert(cs.end(), {++c, 0});
        Add(prefix + "kernel.A_re", heads, {1}, std::vector<float>(heads, -1));
        Add(prefix + "kernel.A_im", heads, {1}, std::vector<float>(heads, 0));
        Add(prefix + "kernel.C", heads, {1, 2}, cs);
        Add(prefix + "kernel.log_step", heads, {1}, std::vector<float>(heads, 0));
        Add(prefix + "D", heads, {1}, std::vector<float>(heads, 100));
      }
    }
    const auto writer =
        SafetensorsWriter::Create(directory_.File("model.safetensors"), specs_).value();
    ASSERT_TRUE(writer->Append(std::as_bytes(std::span(values_))).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }

  TemporaryDirectory directory_;

 private:
  void Add(const std::string& name, int64_t heads, std::vector<int64_t> shape,
           const std::vector<float>& values) {
    if (heads > 1) shape.insert(shape.begin(), heads);
    specs_.push_back({name, DType::kF32, shape});
    values_.insert(values_.end(), values.begin(), values.end());
  }

  std::vector<TensorSpec> specs_;
  std::vector<float> values_;
};

TEST_F(EncoderKernelsTest, KernelsLieByLayerDirectionAndHead) {
  for (const int64_t heads : {1, 2}) {
    Write(heads);
    const auto kernels = ReadEncoderKernels(directory_.path(), 5);
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    EXPECT_EQ(kernels->layers, 2);
    EXPECT_EQ(kernels->heads, heads);
    ASSERT_EQ(kernels->values.size(), static_cast<size_t>(2 * 2 * heads * 5));
    float c = 0;
    for (int64_t layer = 0; layer < 2; ++layer) {
      for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
        for (int64_t head = 0; head < heads; ++head) {
          ++c;
          const auto kernel = kernels->Of(layer, direction, head);
          ASSERT_EQ(kernel.size(), 5u);
          for (int l = 0; l < 5; ++l) {
            EXPECT_FLOAT_EQ(kernel[l], static_cast<float>(c * (1 - std::exp(-1.0)) * std::exp(-l)));
          }
        }
      }
    }
  }
}

TEST_F(EncoderKernelsTest, AttentionHasNoKernels) {
  BigsConfig config = TinyBigsConfig();
  config.routing = EncoderRouting::kAttention;
  config.num_attention_heads = 4;
  directory_.Write("config.json", ToJson(config));
  const absl::Status status = ReadEncoderKernels(directory_.path(), 5).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("attention, which has no kernels"));
}

}  // namespace
}  // namespace hippodrome::encoder_kernels_test
