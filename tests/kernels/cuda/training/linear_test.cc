#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/large_problems.h"

namespace hippodrome::training_linear_ops_test {
namespace {

class TrainingLinearOpsTest : public testing::TestWithParam<TrainingProblem> {};

INSTANTIATE_TEST_SUITE_P(Problems, TrainingLinearOpsTest,
                         testing::ValuesIn(LargeOf(LinearProblems())),
                         [](const auto& info) { return info.param.name; });

TEST_P(TrainingLinearOpsTest, GivesTheReferencesGradients) {
  ExpectGradientsInEveryThreadOrder(GetParam());
}

// Bits of bf16 that are the same in both types of activations.
std::vector<float> RoundedValues(int64_t n, uint32_t seed) {
  std::vector<float> values = RandomValues(n, seed);
  for (float& x : values) x = ToFloat(ToBF16(x));
  return values;
}

// The gradients of a gated product of bf16 weights.
class GatedProduct {
 public:
  // `activations`: the type of x, the bias and the gate, kF32 or kBF16.
  GatedProduct(CudaBackend& backend, DType activations) : backend_(backend) {
    const OwnedTensor x = New(activations, kRows, kIn, 1);
    const OwnedTensor bias = New(activations, 1, kOut, 2);
    const OwnedTensor gate = New(activations, kRows, kOut, 3);
    const OwnedTensor w = New(DType::kF32, kOut, kIn, 4);
    const OwnedTensor dy = New(DType::kF32, kRows, kOut, 5);
    const auto weights = backend.NewTrainedLinear(kOut, kIn, DType::kBF16);
    backend.PackTrainedLinear(std::span(&w.view, 1), *weights);
    Epilogue epilogue;
    epilogue.bias = bias;
    epilogue.activation = Epilogue::Activation::kGeluTanh;
    epilogue.gate = gate;
    const OwnedTensor dx = backend.NewTensor(kRows, kIn);
    const OwnedTensor dw = backend.NewTensor(kOut, kIn);
    const OwnedTensor dbias = backend.NewTensor(1, kOut);
    const OwnedTensor dgate = backend.NewTensor(kRows, kOut);
    backend.LinearBackward(
        x, *weights, epilogue, dy,
        {.x = {dx, false}, .weights = dw, .bias = dbias, .gate = {dgate, false}});
    for (const Tensor& gradient : {dx.view, dw.view, dbias.view, dgate.view}) {
      gradients.push_back(Get(backend, gradient));
    }
  }

  std::vector<Numbers> gradients;

 private:
  static constexpr int64_t kRows = 19, kIn = 24, kOut = 17;

  OwnedTensor New(DType type, int64_t rows, int64_t cols, uint32_t seed) {
    OwnedTensor tensor = backend_.NewActivations(rows, cols, type);
    backend_.Upload(RoundedValues(rows * cols, seed), tensor);
    return tensor;
  }

  CudaBackend& backend_;
};

TEST(LinearBackwardTest, TakesActivationsOfBothTypes) {
  CudaBackend backend;
  EXPECT_EQ(GatedProduct(backend, DType::kBF16).gradients,
            GatedProduct(backend, DType::kF32).gradients);
}

TEST(LinearCrossEntropyTest, LossesAloneAreThoseBesideGradients) {
  constexpr int64_t kRows = 3, kIn = 5, kVocab = 1200;
  CudaBackend backend;
  const OwnedTensor x = backend.NewTensor(kRows, kIn);
  const OwnedTensor w = backend.NewTensor(kVocab, kIn);
  backend.Upload(RandomValues(kRows * kIn, 1), x);
  backend.Upload(RandomValues(kVocab * kIn, 2), w);
  const auto weights = backend.NewTrainedLinear(kVocab, kIn, DType::kF32);
  backend.PackTrainedLinear(std::span(&w.view, 1), *weights);
  const OwnedTensor labels = UploadIndices(backend, 1, std::vector<int32_t>{1199, -1, 0});
  const OwnedTensor alone = backend.NewTensor(1, kRows);
  backend.LinearCrossEntropy(x, *weights, {}, labels, 1, alone, nullptr);
  const OwnedTensor beside = backend.NewTensor(1, kRows);
  const LinearGradients gradients;
  backend.LinearCrossEntropy(x, *weights, {}, labels, 1, beside, &gradients);
  EXPECT_EQ(Get(backend, alone), Get(backend, beside));
  EXPECT_EQ(Get(backend, alone)[1], 0);
}

}  // namespace
}  // namespace hippodrome::training_linear_ops_test
