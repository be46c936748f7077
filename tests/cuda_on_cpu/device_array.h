// An array in device memory, for tests.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_DEVICE_ARRAY_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_DEVICE_ARRAY_H_

#include <cuda_runtime.h>

#include <stdexcept>
#include <vector>

namespace cuda_on_cpu {

inline void ThrowIfFailed(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    ThrowIfFailed(cudaMalloc(&data_, size * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    ThrowIfFailed(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(size_);
    ThrowIfFailed(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

// On the default stream.
template <typename... P>
void RunKernel(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
               std::type_identity_t<P>... arguments) {
  ThrowIfFailed(
      LaunchKernel(nullptr, "test", kernel, grid, block, shared_bytes, false, arguments...));
}

// Runs `check` with threads in every order.
template <typename Check>
void InEveryOrder(const Check& check) {
  SetThreadOrder(ThreadOrder::kForward);
  check();
  SetThreadOrder(ThreadOrder::kReverse);
  check();
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SetThreadOrder(ThreadOrder::kShuffled, seed);
    check();
  }
  SetThreadOrder(ThreadOrder::kForward);
}

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_DEVICE_ARRAY_H_
