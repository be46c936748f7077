// What a backend throws when its device failed.
#ifndef HIPPODROME_KERNELS_DEVICE_ERROR_H_
#define HIPPODROME_KERNELS_DEVICE_ERROR_H_

#include <stdexcept>

namespace hippodrome {

// The message is "cuda: OPERATION: what happened". What the backend holds is lost.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_DEVICE_ERROR_H_
