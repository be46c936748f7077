// The training operations of CpuBackend on matrices; each forwards to the file of its forward.
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/cross_entropy.h"
#include "kernels/cpu/linear_backward.h"
#include "kernels/cpu/trained_weights.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the cast.
const cpu::TrainedWeights& Trained(const LinearWeights& weights) {
  return static_cast<const cpu::TrainedWeights&>(weights);
}

}  // namespace

std::unique_ptr<LinearWeights> CpuBackend::NewTrainedLinear(int64_t out, int64_t in, DType dtype) {
  return std::make_unique<cpu::TrainedWeights>(out, in, dtype);
}

void CpuBackend::PackTrainedLinear(std::span<const Tensor> parts, LinearWeights& w) {
  cpu::PackTrainedLinear(pool_, parts, Trained(w));
}

void CpuBackend::LinearBackward(Tensor x, const LinearWeights& w, const Epilogue& epilogue,
                                Tensor dy, const LinearGradients& gradients) {
  cpu::LinearBackward(pool_, x, Trained(w), epilogue, dy, gradients);
}

void CpuBackend::LinearCrossEntropy(Tensor x, const LinearWeights& w, Tensor bias, Tensor labels,
                                    double scale, Tensor losses, const LinearGradients* gradients) {
  cpu::LinearCrossEntropy(pool_, x, Trained(w), bias, labels, scale, losses, gradients);
}

}  // namespace hippodrome
