// What the counters look at: every kernel, at shapes small enough for the emulator and large enough
// for whole warps and tiles.
#ifndef HIPPODROME_TESTS_KERNELS_CUDA_COUNTED_SHAPES_H_
#define HIPPODROME_TESTS_KERNELS_CUDA_COUNTED_SHAPES_H_

#include <cstdint>
#include <initializer_list>
#include <span>

#include "kernels/cuda/conv/long_conv.h"

namespace hippodrome {

struct CountedShape {
  const char* name;
  void (*run)();  // resets the counters once all is ready
};

std::span<const CountedShape> CountedShapes();

// A kernel of tools/device_model/kernel_units.h alone, with blocks as large as in serving, of which
// there are few.
struct UnitShape {
  const char* kernel;     // KernelUnits::kernel
  const char* operation;  // under which it is launched
  double units;           // that run() counts
  void (*run)();          // resets the counters once all is ready
};

std::span<const UnitShape> UnitShapes();

// The next reset the counters before they begin.
// Two tokens after each prompt, by a small H3 model with attention.
void GenerateSmall(Backend& backend, DType weights, int64_t sequences, int64_t prompt);
// Texts by a small BiGS model.
void EncodeSmall(Backend& backend, DType weights, int64_t width, int64_t sequences, int64_t length);
// A gated convolution in bf16.
void ConvolveGated(int64_t sequences, int64_t channels, int64_t points);
// A long convolution of that many channels with one kernel, by each of the methods.
inline constexpr int64_t kLongConvChannels = 64;
void ConvolveLong(DType dtype, int64_t tokens, std::initializer_list<cuda::LongConvMethod> methods);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_CUDA_COUNTED_SHAPES_H_
