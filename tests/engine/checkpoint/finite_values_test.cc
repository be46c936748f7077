#include "engine/checkpoint/finite_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>

#include "engine/base/status.h"
#include "engine/models/h3/hybrid_h3.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::finite_values_test {
namespace {

template <typename Value>
TensorView View(DType dtype, const std::vector<Value>& values) {
  return {"t", dtype, {std::ssize(values)}, std::as_bytes(std::span(values))};
}

TEST(FiniteValuesTest, TheFirstThatIsNotIsNamedInEveryType) {
  const std::vector<size_t> places = {0, 1023, 1024, 2999};
  for (const size_t place : places) {
    std::vector<float> f32(3000, std::numeric_limits<float>::max());
    std::vector<uint16_t> bf16(3000, 0x7f7f), f16(3000, 0x7bff);
    std::vector<double> f64(3000, std::numeric_limits<float>::max());
    EXPECT_TRUE(CheckFinite(View(DType::kF32, f32)).ok());
    EXPECT_TRUE(CheckFinite(View(DType::kBF16, bf16)).ok());
    EXPECT_TRUE(CheckFinite(View(DType::kF16, f16)).ok());
    EXPECT_TRUE(CheckFinite(View(DType::kF64, f64)).ok());
    f32[place] = std::numeric_limits<float>::quiet_NaN();
    bf16[place] = 0xff80;  // minus infinity
    f16[place] = 0x7c01;   // NaN
    f64[place] = 1e39;     // infinite as f32
    const std::string message = "t: element " + std::to_string(place) + " is not a finite number";
    EXPECT_EQ(Message(CheckFinite(View(DType::kF32, f32))), message);
    EXPECT_EQ(Message(CheckFinite(View(DType::kBF16, bf16))), message);
    EXPECT_EQ(Message(CheckFinite(View(DType::kF16, f16))), message);
    EXPECT_EQ(Message(CheckFinite(View(DType::kF64, f64))), message);
  }
}

// Spoils the last value of one tensor.
class SpoiledWeights final : public WeightsSource {
 public:
  explicit SpoiledWeights(std::string name) : name_(std::move(name)) {}
  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override {
    HIPPODROME_ASSIGN_OR_RETURN(TensorView tensor, weights_.Get(name, shape));
    names_.push_back(name);
    if (name != name_) return tensor;
    copy_.resize(tensor.data.size() / sizeof(float));
    std::memcpy(copy_.data(), tensor.data.data(), tensor.data.size());
    copy_.back() = std::numeric_limits<float>::quiet_NaN();
    tensor.data = std::as_bytes(std::span(copy_));
    return tensor;
  }
  void Drop(const TensorView& tensor) override { weights_.Drop(tensor); }
  const std::vector<std::string>& names() const { return names_; }

 private:
  TestWeights weights_;
  std::string name_;
  std::vector<float> copy_;
  std::vector<std::string> names_;
};

TEST(FiniteValuesTest, ADecoderWithANaNAnywhereIsRefused) {
  const auto backend = MakeCpuBackend();
  SpoiledWeights sound("");
  ASSERT_TRUE(HybridH3::Load(*backend, TinyConfig(), sound, DType::kF32).ok());
  ASSERT_GT(sound.names().size(), 10u);
  for (const std::string& name : sound.names()) {
    SpoiledWeights spoiled(name);
    const auto model = HybridH3::Load(*backend, TinyConfig(), spoiled, DType::kF32);
    EXPECT_THAT(Message(model.status()), testing::HasSubstr(name));
    EXPECT_TRUE(absl::IsInvalidArgument(model.status())) << name;
  }
}

}  // namespace
}  // namespace hippodrome::finite_values_test
