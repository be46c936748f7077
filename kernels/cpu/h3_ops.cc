// The operations of CpuBackend on H3 layers; each forwards to the file of its name.
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/h3_sequence.h"
#include "kernels/cpu/h3_state.h"
#include "kernels/cpu/h3_step.h"
#include "kernels/cpu/h3_weights.h"
#include "kernels/cpu/tensor_memory.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the casts.
const cpu::H3Constants& Constants(const H3Weights& weights) {
  return static_cast<const cpu::H3Constants&>(weights);
}

cpu::H3Slots& Slots(H3State& state) { return static_cast<cpu::H3Slots&>(state); }

}  // namespace

std::unique_ptr<H3Weights> CpuBackend::PrepareH3(const H3Parameters& parameters,
                                                 DType /*weights*/) {
  return std::make_unique<cpu::H3Constants>(pool_, parameters);
}

std::unique_ptr<H3State> CpuBackend::NewH3State(const H3Weights& weights, int64_t slots) {
  return std::make_unique<cpu::H3Slots>(Constants(weights).layout(), slots);
}

void CpuBackend::ResetSlot(H3State& state, int64_t slot) { Slots(state).Reset(slot); }

void CpuBackend::CopySlot(H3State& state, int64_t from, int64_t to) { Slots(state).Copy(from, to); }

H3StateExport CpuBackend::ExportSlot(const H3Weights& weights, const H3State& state, int64_t slot,
                                     int64_t position) {
  return cpu::ExportSlot(Constants(weights), static_cast<const cpu::H3Slots&>(state), slot,
                         position);
}

void CpuBackend::H3Sequence(const H3Weights& weights, Tensor qkv, H3State& state, Tensor slots,
                            int64_t start, Tensor o) {
  const int64_t tokens = qkv.rows / slots.cols;
  for (int64_t b = 0; b < slots.cols; ++b) {
    const int32_t slot = cpu::I32Row(slots, 0)[b];
    if (slot < 0) continue;
    cpu::H3Sequence(pool_, Constants(weights), qkv.Rows(b * tokens, tokens), Slots(state), slot,
                    start, o.Rows(b * tokens, tokens));
  }
}

void CpuBackend::H3Step(const H3Weights& weights, Tensor qkv, H3State& state, Tensor slots,
                        Tensor positions, Tensor o) {
  cpu::H3Step(pool_, Constants(weights), qkv, Slots(state), slots, positions, o);
}

}  // namespace hippodrome
