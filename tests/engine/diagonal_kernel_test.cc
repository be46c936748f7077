// The published BiGS code's kernels and layer outputs at full size, from
// tests/testdata/bigs_golden.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "kernels/make_backend.h"
#include "kernels/ssm/diagonal_ssm.h"

namespace hippodrome::diagonal_kernel_test {
namespace {

constexpr int64_t kSsms = 8;
constexpr int64_t kModes = 64;
constexpr int64_t kTokens = 4096;
constexpr int64_t kChannels = 2;
constexpr int64_t kOutputs[] = {0, 3, 6, 7};  // the SSMs of y

class DiagonalKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto file = SafetensorsFile::Open(std::string(HIPPODROME_TESTDATA) +
                                      "/bigs_golden/kernels/vectors.safetensors");
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    a_real_ = Floats("A_re");
    a_imag_ = Floats("A_im");
    c_ = Floats("C");
    log_step_ = Floats("log_step");
    d_ = Floats("D");
  }

  std::vector<float> Floats(const std::string& name) const { return *ToFloats(*file_->Find(name)); }
  std::vector<double> Doubles(const std::string& name) const {
    const TensorView& tensor = *file_->Find(name);
    std::vector<double> values(static_cast<size_t>(tensor.elements()));
    EXPECT_EQ(tensor.dtype, DType::kF64);
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    return values;
  }

  // SSM `ssm` as one head.
  DiagonalSsmParameters Parameters(int64_t ssm) const {
    const auto part = [&](const std::vector<float>& all) {
      const size_t size = all.size() / kSsms;
      return std::span(all).subspan(static_cast<size_t>(ssm) * size, size);
    };
    return {.channels = kChannels,
            .heads = 1,
            .modes = kModes,
            .a_real = part(a_real_),
            .a_imag = part(a_imag_),
            .c = part(c_),
            .log_step = part(log_step_),
            .d = part(d_)};
  }

  std::unique_ptr<SafetensorsFile> file_;
  std::vector<float> a_real_, a_imag_, c_, log_step_, d_;
};

// Each of 4096 steps rounds a mode once more: 1e-15 * 4096 of sum |C B|, of the order of 100.
TEST_F(DiagonalKernelTest, IsThePublishedKernel) {
  const std::vector<double> golden = Doubles("kernel.f64");
  for (int64_t ssm = 0; ssm < kSsms; ++ssm) {
    const std::vector<double> kernel = DiagonalKernel(Parameters(ssm), kTokens);
    double worst = 0;
    for (size_t l = 0; l < static_cast<size_t>(kTokens); ++l) {
      worst = std::max(worst, std::abs(kernel[l] - golden[static_cast<size_t>(ssm * kTokens) + l]));
    }
    EXPECT_LT(worst, 1e-9) << ssm;
  }
}

// The golden output is a transform in double. Ours errs by 2 u log2(4096) |K|_2 |u|_2, and by u of
// |K|_2 |u|_2 twice for the rounding of K and of its spectrum.
TEST_F(DiagonalKernelTest, ConvolvesAsThePublishedLayer) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend();
  const std::vector<double> golden = Doubles("y.f64");
  const std::vector<float> inputs = Floats("u");
  double u2 = 0;
  for (const float value : inputs) u2 += double{value} * value;
  OwnedTensor u = backend->NewActivations(kTokens, kChannels, DType::kF32);
  OwnedTensor y = backend->NewActivations(kTokens, kChannels, DType::kF32);
  backend->Upload(inputs, u);
  for (size_t i = 0; i < std::size(kOutputs); ++i) {
    const DiagonalSsmParameters parameters = Parameters(kOutputs[i]);
    std::vector<double> kernel = DiagonalKernel(parameters, kTokens);
    kernel[0] += double{parameters.d[0]};
    double k2 = 0;
    for (const double value : kernel) k2 += value * value;
    const auto weights = backend->PrepareLongConv(parameters, kTokens, DType::kF32);
    backend->LongConv(*weights, u, 1, Direction::kForward, y);
    std::vector<float> outputs(inputs.size());
    backend->Download(y, outputs);
    double worst = 0;
    for (size_t j = 0; j < outputs.size(); ++j) {
      worst = std::max(worst, std::abs(outputs[j] - golden[i * outputs.size() + j]));
    }
    EXPECT_LT(worst, 26 * 0x1p-24 * std::sqrt(k2 * u2)) << kOutputs[i];
  }
}

}  // namespace
}  // namespace hippodrome::diagonal_kernel_test
