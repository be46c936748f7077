// The operations of CudaBackend on H3 layers; each forwards to the file of its name.
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/h3_sequence.h"
#include "kernels/cuda/h3_state.h"
#include "kernels/cuda/h3_step.h"
#include "kernels/cuda/h3_weights.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the casts.
const cuda::H3Constants& Constants(const H3Weights& weights) {
  return static_cast<const cuda::H3Constants&>(weights);
}

cuda::H3Slots& Slots(H3State& state) { return static_cast<cuda::H3Slots&>(state); }

}  // namespace

std::unique_ptr<H3Weights> CudaBackend::PrepareH3(const H3Parameters& parameters, DType weights) {
  const DType activations = weights == DType::kBF16 ? DType::kBF16 : DType::kF32;
  return std::make_unique<cuda::H3Constants>(device_, parameters, activations);
}

std::unique_ptr<H3State> CudaBackend::NewH3State(const H3Weights& weights, int64_t slots) {
  return std::make_unique<cuda::H3Slots>(device_, Constants(weights), slots);
}

void CudaBackend::ResetSlot(H3State& state, int64_t slot) { Slots(state).Reset(device_, slot); }

void CudaBackend::CopySlot(H3State& state, int64_t from, int64_t to) {
  Slots(state).Copy(device_, from, to);
}

H3StateExport CudaBackend::ExportSlot(const H3Weights& weights, const H3State& state, int64_t slot,
                                      int64_t position) {
  return cuda::ExportSlot(device_, Constants(weights), static_cast<const cuda::H3Slots&>(state),
                          slot, position);
}

void CudaBackend::H3Sequence(const H3Weights& weights, Tensor qkv, H3State& state, Tensor slots,
                             int64_t start, Tensor o) {
  cuda::H3Sequence(device_, {Constants(weights), qkv, Slots(state), slots, start, o});
}

void CudaBackend::H3Step(const H3Weights& weights, Tensor qkv, H3State& state, Tensor slots,
                         Tensor positions, Tensor o) {
  cuda::H3Step(device_, {Constants(weights), qkv, Slots(state), slots, positions, o});
}

}  // namespace hippodrome
