#include "kernels/cuda/nccl/nccl_exchange.h"

#include <cassert>
#include <string>
#include <vector>

#include "kernels/cuda/nccl/nccl_library.h"

namespace hippodrome::cuda {
namespace {

class NcclExchange final : public GradientExchange {
 public:
  explicit NcclExchange(std::span<Device* const> devices)
      : nccl_(LoadNccl()),
        devices_(devices.begin(), devices.end()),
        communicators_(devices.size()) {
    std::vector<int> indices;
    for (const Device* device : devices) indices.push_back(device->index());
    Check(nccl_.init_all(communicators_.data(), static_cast<int>(indices.size()), indices.data()),
          "join devices");
  }

  ~NcclExchange() override {
    for (NcclCommunicator* communicator : communicators_) nccl_.destroy(communicator);
  }

  // One group is one operation: no device waits for another before all have been told.
  void Sum(std::span<const std::vector<Tensor>> tensors) override {
    assert(tensors.size() == devices_.size());
    Check(nccl_.group_start(), kSum);
    int result = 0;
    for (size_t r = 0; r < tensors.size(); ++r) {
      for (const Tensor& tensor : tensors[r]) {
        if (result == 0) result = SumOne(r, tensor);
      }
    }
    const int ended = nccl_.group_end();
    Check(result != 0 ? result : ended, kSum);
  }

 private:
  static constexpr const char* kSum = "sum gradients";

  int SumOne(size_t r, const Tensor& tensor) {
    assert(tensor.dtype == DType::kF32 && (tensor.rows <= 1 || tensor.stride == tensor.cols));
    const size_t count = static_cast<size_t>(tensor.rows * tensor.cols);
    if (count == 0) return 0;
    return nccl_.all_reduce(tensor.data, tensor.data, count, kNcclFloat32, kNcclSum,
                            communicators_[r], devices_[r]->stream());
  }

  void Check(int result, const char* operation) const {
    if (result == 0) return;
    throw DeviceError(std::string("cuda: ") + operation + ": NCCL: " + nccl_.error_string(result));
  }

  const NcclLibrary nccl_;
  const std::vector<Device*> devices_;
  std::vector<NcclCommunicator*> communicators_;
};

}  // namespace

std::unique_ptr<GradientExchange> MakeNcclExchange(std::span<Device* const> devices) {
  return std::make_unique<NcclExchange>(devices);
}

}  // namespace hippodrome::cuda
