#include "tools/compare/twin_tensors.h"

#include <iterator>
#include <utility>

namespace hippodrome {

OwnedTensor TwinTensors::Join(OwnedTensor expected, OwnedTensor actual) {
  const auto* address = static_cast<const char*>(expected.view.data);
  const Tensor view = expected.view;
  {
    const std::lock_guard lock(mutex_);
    twins_[address] = {view, actual.view};
  }
  // Forgotten before the memory goes, whose address may then come again.
  const auto forget = [this, address, expected = std::move(expected.memory),
                       actual = std::move(actual.memory)](void*) {
    const std::lock_guard lock(mutex_);
    twins_.erase(address);
  };
  return {view, std::shared_ptr<void>(view.data, forget)};
}

Tensor TwinTensors::Of(const Tensor& view) const {
  if (view.data == nullptr) return {};
  const std::lock_guard lock(mutex_);
  const auto* address = static_cast<const char*>(view.data);
  const auto next = twins_.upper_bound(address);
  assert(next != twins_.begin());
  const auto& [base, twins] = *std::prev(next);
  const int64_t offset = (address - base) / static_cast<int64_t>(SizeOf(view.dtype));
  const int64_t row = offset / twins.expected.stride;
  const int64_t col = offset % twins.expected.stride;
  Tensor twin = twins.actual.Rows(row, 1).Cols(col, view.cols);
  twin.rows = view.rows;
  twin.stride *= view.stride / twins.expected.stride;
  return twin;
}

}  // namespace hippodrome
