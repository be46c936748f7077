#include "engine/checkpoint/fingerprint_weights.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/models/h3/hybrid_h3.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::fingerprint_weights_test {
namespace {

// The test model's tensors, one of which has another last bit.
class OneBitOff final : public WeightsSource {
 public:
  explicit OneBitOff(std::string name) : name_(std::move(name)) {}
  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override {
    auto tensor = weights_.Get(name, shape);
    if (name == name_) const_cast<std::byte&>(tensor->data.front()) ^= std::byte{1};
    return tensor;
  }
  void Drop(const TensorView& tensor) override { weights_.Drop(tensor); }

 private:
  std::string name_;
  TestWeights weights_;
};

class FingerprintTest : public testing::Test {
 protected:
  std::string Load(const H3Config& config, DType weights, const std::string& changed = "") {
    OneBitOff source(changed);
    return HybridH3::Load(*backend_, config, source, weights).value()->fingerprint();
  }

  std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 1});
};

TEST_F(FingerprintTest, IsTheModelsAndNotThatOfItsArithmetic) {
  const std::string fingerprint = Load(TinyConfig(), DType::kF32);
  EXPECT_EQ(fingerprint.size(), 32u);
  EXPECT_EQ(Load(TinyConfig(), DType::kF32), fingerprint);
  EXPECT_EQ(Load(TinyConfig(), DType::kBF16), fingerprint);
}

TEST_F(FingerprintTest, DiffersWithEveryTensorAndWithTheConfiguration) {
  const std::string fingerprint = Load(TinyConfig(), DType::kF32);
  for (const char* name :
       {"backbone.embeddings.word_embeddings.weight",
        "backbone.layers.0.mixer.kernel.kernel.log_dt", "backbone.layers.1.mixer.Wqkv.weight",
        "backbone.layers.2.mlp.fc2.bias", "backbone.ln_f.bias"}) {
    EXPECT_NE(Load(TinyConfig(), DType::kF32, name), fingerprint) << name;
  }
  H3Config config = TinyConfig();
  config.layer_norm_epsilon *= 2;
  EXPECT_NE(Load(config, DType::kF32), fingerprint);
}

}  // namespace
}  // namespace hippodrome::fingerprint_weights_test
