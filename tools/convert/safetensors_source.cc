#include "tools/convert/safetensors_source.h"

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/convert/strided_reader.h"

namespace hippodrome {
namespace {

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kF64;
}

class SafetensorsSource : public CheckpointSource {
 public:
  explicit SafetensorsSource(std::unique_ptr<SafetensorsFile> file) : file_(std::move(file)) {
    for (const auto& [name, view] : file_->tensors()) {
      views_.push_back(&view);
      file_bytes_ += view.data.size();
      tensors_.push_back({.name = name,
                          .shape = view.shape,
                          .type = Name(view.dtype),
                          .is_float = IsFloat(view.dtype),
                          .elements = static_cast<uint64_t>(view.elements())});
    }
  }

  absl::Status Read(size_t index, uint64_t first, std::span<float> out) override {
    TensorView part = *views_[index];
    const size_t width = SizeOf(part.dtype);
    part.data = part.data.subspan(first * width, out.size() * width);
    ConvertToFloat(part.dtype, part.data, out);
    file_->Drop(part);
    return absl::OkStatus();
  }

  bool Same(size_t a, size_t b) const override { return a == b; }

 private:
  std::unique_ptr<SafetensorsFile> file_;
  std::vector<const TensorView*> views_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenSafetensorsSource(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file, SafetensorsFile::Open(path));
  return std::make_unique<SafetensorsSource>(std::move(file));
}

}  // namespace hippodrome
