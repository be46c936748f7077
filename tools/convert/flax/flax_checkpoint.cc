#include "tools/convert/flax/flax_checkpoint.h"

#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tools/convert/flax/flax_tree.h"
#include "tools/convert/random_access_file.h"
#include "tools/convert/strided_reader.h"

namespace hippodrome {
namespace {

class FlaxCheckpoint : public CheckpointSource {
 public:
  FlaxCheckpoint(std::unique_ptr<RandomAccessFile> file, std::vector<FlaxArray> arrays)
      : file_(std::move(file)), arrays_(std::move(arrays)) {
    flax_ = true;
    file_bytes_ = file_->size();
    for (const FlaxArray& array : arrays_) {
      tensors_.push_back({.name = array.name,
                          .shape = array.shape,
                          .type = array.type,
                          .is_float = array.dtype.has_value(),
                          .elements = array.elements});
    }
  }

  absl::Status Read(size_t index, uint64_t first, std::span<float> out) override {
    const FlaxArray& array = arrays_[index];
    const size_t width = SizeOf(*array.dtype);
    buffer_.resize(out.size() * width);
    HIPPODROME_RETURN_IF_ERROR(file_->Read(array.offset + first * width, buffer_));
    ConvertToFloat(*array.dtype, buffer_, out);
    return absl::OkStatus();
  }

  bool Same(size_t a, size_t b) const override { return a == b; }

 private:
  std::unique_ptr<RandomAccessFile> file_;
  std::vector<FlaxArray> arrays_;
  std::vector<std::byte> buffer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenFlaxCheckpoint(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(auto file, RandomAccessFile::Open(path));
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<FlaxArray> arrays, ReadFlaxTree(*file));
  return std::make_unique<FlaxCheckpoint>(std::move(file), std::move(arrays));
}

}  // namespace hippodrome
