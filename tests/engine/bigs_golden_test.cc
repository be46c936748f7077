// The published BiGS code's numbers, from tests/testdata/bigs_golden.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weights_source.h"
#include "engine/models/diagonal_ssm.h"
#include "engine/passes/encoder_forward.h"
#include "kernels/ssm/diagonal_ssm.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/test_backend.h"

namespace hippodrome::bigs_golden_test {
namespace {

using Gelu = Epilogue::Activation;

const std::string kDirectory = std::string(HIPPODROME_TESTDATA) + "/bigs_golden/";

class BigsGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    directory_ = kDirectory + GetParam();
    auto vectors = SafetensorsFile::Open(directory_ + "/vectors.safetensors");
    ASSERT_TRUE(vectors.ok()) << vectors.status();
    vectors_ = *std::move(vectors);
    auto file = SafetensorsFile::Open(directory_ + "/model.safetensors");
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    auto config = ReadBigsConfig(directory_);
    ASSERT_TRUE(config.ok()) << config.status();
    config_ = *std::move(config);
  }

  std::unique_ptr<Bigs> Load(Backend& backend) const {
    FileWeights source(*file_);
    return std::move(Bigs::Load(backend, config_, source, DType::kF32)).value();
  }

  EncoderInputs Inputs(const std::string& set) const {
    const auto integers = [&](const std::string& name) {
      const auto values = *ToIntegers(*vectors_->Find(set + "." + name));
      return std::vector<int32_t>(values.begin(), values.end());
    };
    const TensorView* ids = vectors_->Find(set + ".input_ids");
    return {.batch = ids->shape[0],
            .length = ids->shape[1],
            .ids = integers("input_ids"),
            .types = integers("token_type_ids"),
            .mask = integers("attention_mask")};
  }

  // Largest difference from the golden tensor `name`.
  double Error(Backend& backend, const EncoderInputs& inputs, const std::string& name) const {
    const auto model = Load(backend);
    std::vector<float> logits;
    const absl::Status status =
        EncoderForward(backend, *model, inputs, [&](std::span<const float> values) {
          logits.insert(logits.end(), values.begin(), values.end());
        });
    EXPECT_TRUE(status.ok()) << status;
    const std::vector<float> golden = *ToFloats(*vectors_->Find(name));
    EXPECT_EQ(logits.size(), golden.size());
    double worst = 0;
    for (size_t i = 0; i < golden.size() && i < logits.size(); ++i) {
      const double error = std::abs(logits[i] - golden[i]);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
    return worst;
  }
  double Error(Backend& backend, const std::string& set, const std::string& what) const {
    return Error(backend, Inputs(set), set + "." + what);
  }

  // The published tolerances, eight times the published code's own f32 error.
  double Tolerance() const { return config_.head == EncoderHead::kMaskedLm ? 4.1e-5 : 1.6e-6; }

  std::string directory_;
  std::unique_ptr<SafetensorsFile> file_, vectors_;
  BigsConfig config_;
};

TEST_P(BigsGoldenTest, TheReferenceIsThePublishedModel) {
  const auto backend = MakeReferenceBackend();
  for (const char* set : {"len1", "len9", "len64", "max"}) {
    // The vectors are stored in f32: logits of up to 6 are rounded by up to 2.5e-7, of up to 1 by
    // 3e-8, and so are ours.
    EXPECT_LE(Error(*backend, set, "logits_f64"),
              config_.head == EncoderHead::kMaskedLm ? 5e-7 : 6e-8)
        << set;
  }
}

TEST_P(BigsGoldenTest, LogitsAgree) {
  HIPPODROME_TEST_BACKEND(backend);
  for (const char* set : {"len1", "len9", "len64", "max"}) {
    if (TestBackendIsSlow() && std::string(set) == "max") continue;
    EXPECT_LE(Error(*backend, set, "logits_f64"), Tolerance()) << set;
  }
}

TEST_P(BigsGoldenTest, LogitsAgreeWithTheOtherFormOfGelu) {
  HIPPODROME_TEST_BACKEND(backend);
  config_.layer_gelu = Gelu::kGeluTanh;
  for (const char* set : {"len9", "max"}) {
    if (TestBackendIsSlow() && std::string(set) == "max") continue;
    EXPECT_LE(Error(*backend, set, "logits_tanhgelu"), Tolerance()) << set;
  }
}

TEST_P(BigsGoldenTest, AbsentTokenTypesAreZeros) {
  HIPPODROME_TEST_BACKEND(backend);
  EncoderInputs inputs = Inputs("len9");
  std::fill(inputs.types.begin(), inputs.types.end(), 0);
  EXPECT_LE(Error(*backend, inputs, "len9.logits_no_token_types"), Tolerance());
}

TEST_P(BigsGoldenTest, KernelsAreThePublishedOnes) {
  const TensorView* golden = vectors_->Find("kernel.f64");
  if (golden == nullptr) GTEST_SKIP() << "this model's kernels are not among the vectors";
  const std::vector<float> expected = *ToFloats(*golden);
  const int64_t length = config_.max_position_embeddings;
  FileWeights source(*file_);
  for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
    const std::string prefix = "bigs.encoder.layer." + std::to_string(layer) + ".";
    for (int direction = 0; direction < 2; ++direction) {
      const auto ssm =
          ReadDiagonalSsm(source, config_, prefix + (direction == 0 ? "fs4." : "bs4."));
      ASSERT_TRUE(ssm.ok()) << ssm.status();
      const auto kernel = DiagonalKernel(ssm->View(config_), length);
      for (int64_t l = 0; l < length; ++l) {
        const double published = expected[(layer * 2 + direction) * length + l];
        // As ToFloats rounds it.
        EXPECT_NEAR(kernel[l], published, 1e-7 * std::max(1.0, std::abs(published)))
            << layer << " " << direction << " " << l;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BigsGoldenTest, testing::Values("masked_lm", "classifier"),
                         [](const auto& info) { return info.param; });

using BigsGoldenPoolerTest = BigsGoldenTest;

TEST_P(BigsGoldenPoolerTest, TheOtherPoolerTakesPaddingToo) {
  HIPPODROME_TEST_BACKEND(backend);
  config_.pool_padding = true;
  for (const char* set : {"len1", "len9", "len64"}) {
    EXPECT_LE(Error(*backend, set, "logits_pool_mean"), Tolerance()) << set;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BigsGoldenPoolerTest, testing::Values("classifier"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hippodrome::bigs_golden_test
