#include "tools/convert/models/prepare_model.h"

#include <algorithm>
#include <cstring>

#include "engine/base/status.h"
#include "tools/convert/printable.h"

namespace hippodrome {

absl::StatusOr<bool> EqualElements(TensorReader& tensors, const std::string& a,
                                   const std::string& b, uint64_t elements) {
  constexpr uint64_t kChunk = uint64_t{1} << 20;
  std::vector<float> x;
  std::vector<float> y;
  for (uint64_t first = 0; first < elements; first += kChunk) {
    x.resize(std::min(kChunk, elements - first));
    y.resize(x.size());
    HIPPODROME_RETURN_IF_ERROR(tensors.Read(a, first, x));
    HIPPODROME_RETURN_IF_ERROR(tensors.Read(b, first, y));
    if (std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

absl::Status CheckFloat(const SourceTensor& tensor) {
  if (tensor.is_float) return absl::OkStatus();
  return InvalidArgument("tensor '" + Printable(tensor.name) + "' is of type " +
                         Printable(tensor.type) + "; expected F32, F16, BF16 or F64");
}

}  // namespace hippodrome
