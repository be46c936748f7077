#include "kernels/cuda/gemm/trained_weights.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::trained_weights_test {
namespace {

std::vector<float> Read(Device& device, const PackedWeights& w) {
  std::vector<float> values(static_cast<size_t>(w.out() * w.in()));
  CopyOut(device, {w.data(), w.dtype(), w.out(), w.in(), w.in()}, std::span<float>(values));
  return values;
}

TEST(TrainedWeightsTest, PacksPartsBothWaysAgainAndAgain) {
  constexpr int64_t kFirst = 34, kSecond = 7, kIn = 45, kOut = kFirst + kSecond;
  Device device;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    TrainedWeights w(device, kOut, kIn, dtype);
    EXPECT_EQ(Read(device, w), std::vector<float>(kOut * kIn));
    for (const uint32_t seed : {1, 2}) {
      const std::vector<float> values = RandomValues(kOut * kIn, seed);
      const DeviceMatrix all(device, {kOut, kIn, DType::kF32, 3}, values);
      const Tensor parts[] = {all.view().Rows(0, kFirst), all.view().Rows(kFirst, kSecond)};
      PackTrainedLinear(device, parts, w);
      const std::vector<float> rows = Read(device, w);
      const std::vector<float> columns = Read(device, w.transposed());
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t turned = i % kIn * kOut + i / kIn;
        ASSERT_EQ(rows[i], Stored(dtype, values[i]));
        ASSERT_EQ(columns[turned], rows[i]);
      }
    }
    EXPECT_EQ(w.bytes(), 2 * kOut * kIn * static_cast<int64_t>(SizeOf(dtype)));
  }
}

}  // namespace
}  // namespace hippodrome::cuda::trained_weights_test
