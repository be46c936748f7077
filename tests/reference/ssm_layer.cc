#include "tests/reference/ssm_layer.h"

#include "tests/reference/matrix.h"

namespace hippodrome::reference {

SsmLayerState::SsmLayerState(const LongConvSsm& ssm, int64_t slots) : ssm_(ssm), slots_(slots) {
  for (int64_t slot = 0; slot < slots; ++slot) Reset(slot);
}

int64_t SsmLayerState::bytes_per_slot() const {
  return ssm_.channels() * ssm_.state_size() *
         static_cast<int64_t>(sizeof(LongConvSsm::State::value_type));
}

std::vector<StateArray> SsmLayerState::arrays() const {
  return SsmStateArrays(ssm_.channels(), ssm_.modes());
}

void SsmLayerState::Reset(int64_t index) {
  slots_[index].assign(ssm_.channels(), LongConvSsm::State(ssm_.state_size()));
}

void SsmLayerState::Export(int64_t index, std::span<const std::span<float>> arrays) const {
  float* to = arrays[0].data();
  for (const LongConvSsm::State& x : slots_[index]) {
    for (int64_t n = 0; n < ssm_.modes(); ++n) {
      *to++ = static_cast<float>(x[n].real());
      *to++ = static_cast<float>(x[n].imag());
    }
  }
}

void SsmLayerState::Import(int64_t index, std::span<const std::span<const float>> arrays) {
  const float* from = arrays[0].data();
  for (LongConvSsm::State& x : slots_[index]) {
    for (int64_t n = 0; n < ssm_.modes(); ++n, from += 2) x[n] = {from[0], from[1]};
    ssm_.Complete(x);
  }
}

void SsmLayerState::Step(int64_t index, Tensor u, Tensor y) {
  for (int64_t c = 0; c < u.cols; ++c) At(y, 0, c) = ssm_.Step(c, At(u, 0, c), slots_[index][c]);
}

}  // namespace hippodrome::reference
