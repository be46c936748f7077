// The state of a slot in the layout that backends exchange, see RecurrentState::arrays().
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_EXCHANGE_H_
#define HIPPODROME_KERNELS_CUDA_H3_H3_EXCHANGE_H_

#include <cstdint>
#include <span>

#include "kernels/cuda/h3/h3_state.h"

namespace hippodrome::cuda {

// The contracts of Backend::ExportSlot and Backend::ImportSlot. Tokens that still wait to be taken
// into rings and modes (h3_lookahead.h) are taken into what is exported, by the arithmetic that
// would do it: none are pending there. An imported slot has none either: those that are pending in
// the arrays are taken in.
void ExportSlot(Device& device, const H3Slots& state, int64_t slot, int64_t position,
                std::span<const std::span<float>> arrays);
void ImportSlot(Device& device, H3Slots& state, int64_t slot, int64_t position,
                std::span<const std::span<const float>> arrays);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_EXCHANGE_H_
