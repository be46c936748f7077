// What benchmarks measure on a device beside the operations of its backend.
#ifndef HIPPODROME_KERNELS_DEVICE_YARDSTICKS_H_
#define HIPPODROME_KERNELS_DEVICE_YARDSTICKS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace hippodrome {

// Not thread-safe. Seconds are of device time, the mean of the runs in one call.
class DeviceYardsticks {
 public:
  enum class Convolution : uint8_t { kFused, kCufft };

  virtual ~DeviceYardsticks() = default;

  // As the driver names it: "NVIDIA H200".
  virtual std::string device() const = 0;

  // Copies `bytes` within the device's memory: twice as many move.
  virtual double CopySeconds(int64_t bytes) = 0;

  // One gated convolution y = q * (K (*) (k * v)), bf16 in and out, circular over `points` points
  // in each of `sequences` * `channels` rows; see kernels/cuda/conv/fft_conv.h. Nothing where this
  // build or the kernel has none for these sizes.
  virtual std::optional<double> GatedConvSeconds(Convolution convolution, int64_t sequences,
                                                 int64_t channels, int64_t points) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_DEVICE_YARDSTICKS_H_
