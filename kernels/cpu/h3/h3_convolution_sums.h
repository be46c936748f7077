// The gradients of the taps and kernels of an H3 layer, summed over sequences.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_SUMS_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_SUMS_H_

#include <vector>

#include "kernels/cpu/h3/h3_convolution_layout.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// Each chunk of sequences has sums of its own, which are added in the order of the chunks: the same
// for any number of threads. Kernels are cut to the tokens of a call, n taps and T points.
class H3KernelGradients final : public H3Gradients {
 public:
  explicit H3KernelGradients(const H3ConvolutionLayout& layout);

  // Begins a call. Sums of chunks are unspecified until written.
  void Begin(int64_t chunks, int64_t tokens);
  // [n, kLanes] of a channel block, [T, kLanes] of a tile of the diagonal SSM. Different chunks and
  // groups may be written at the same time.
  float* ChunkTaps(int64_t group, int64_t chunk, int64_t channel_block);
  float* ChunkKernel(int64_t group, int64_t chunk, int64_t tile);
  // Adds the chunks of a group. Different groups may be added at the same time.
  void AddChunks(int64_t group);

  // dtaps [d, N] and dK [H, longest] of all calls. The skips' gradients are those of the first
  // taps.
  std::vector<float> Taps() const;
  std::vector<float> Kernels() const;
  void Zero();

 private:
  int64_t ChunkFloats() const;

  H3ConvolutionLayout layout_;
  int64_t chunks_ = 0;
  int64_t taps_ = 0;            // n
  int64_t tokens_ = 0;          // T
  std::vector<float> partial_;  // [groups, chunks, taps and kernels of a group]
  std::vector<float> dtaps_;    // [groups, channel blocks, N, kLanes]
  std::vector<float> dk_;       // [groups, tiles, longest, kLanes]
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_SUMS_H_
