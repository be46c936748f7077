// The training operations of CudaBackend on matrices; each forwards to the file of its name.
#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/linear_backward.h"
#include "kernels/cuda/trained_weights.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the cast.
const cuda::TrainedWeights& Trained(const LinearWeights& weights) {
  return static_cast<const cuda::TrainedWeights&>(weights);
}

}  // namespace

std::unique_ptr<LinearWeights> CudaBackend::NewTrainedLinear(int64_t out, int64_t in, DType dtype) {
  return std::make_unique<cuda::TrainedWeights>(device_, out, in, dtype);
}

void CudaBackend::PackTrainedLinear(std::span<const Tensor> parts, LinearWeights& w) {
  cuda::PackTrainedLinear(device_, parts, Trained(w));
}

void CudaBackend::LinearBackward(Tensor x, const LinearWeights& w, const Epilogue& epilogue,
                                 Tensor dy, const LinearGradients& gradients) {
  cuda::LinearBackward(device_, matmul_.get(), {x, Trained(w), epilogue, dy, gradients});
}

void CudaBackend::LinearCrossEntropy(Tensor x, const LinearWeights& w, Tensor bias, Tensor labels,
                                     double scale, Tensor losses,
                                     const LinearGradients* gradients) {
  cuda::LinearCrossEntropy(device_, matmul_.get(),
                           {x, Trained(w), bias, labels, scale, losses, gradients});
}

}  // namespace hippodrome
