#include "tools/convert/write_tensors.h"

#include <algorithm>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr uint64_t kChunk = uint64_t{4} << 20;  // elements

int64_t TotalBytes(const std::vector<TensorSpec>& specs) {
  int64_t bytes = 0;
  for (const TensorSpec& spec : specs) {
    bytes += Elements(spec) * static_cast<int64_t>(SizeOf(spec.dtype));
  }
  return bytes;
}

class TensorStream {
 public:
  TensorStream(TensorReader& reader, SafetensorsWriter& writer, int64_t total,
               const ConvertProgress& progress)
      : reader_(reader), writer_(writer), total_(total), progress_(progress) {}

  absl::Status Copy(const TensorSpec& spec) {
    const auto elements = static_cast<uint64_t>(Elements(spec));
    for (uint64_t first = 0; first < elements; first += kChunk) {
      floats_.resize(std::min(kChunk, elements - first));
      HIPPODROME_RETURN_IF_ERROR(reader_.Read(spec.name, first, floats_));
      HIPPODROME_RETURN_IF_ERROR(Append(spec.dtype));
      progress_(done_, total_);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Append(DType dtype) {
    std::span<const std::byte> bytes = std::as_bytes(std::span(floats_));
    if (dtype == DType::kBF16) {
      rounded_.resize(floats_.size());
      std::transform(floats_.begin(), floats_.end(), rounded_.begin(), ToBF16);
      bytes = std::as_bytes(std::span(rounded_));
    }
    done_ += static_cast<int64_t>(bytes.size());
    return writer_.Append(bytes);
  }

  TensorReader& reader_;
  SafetensorsWriter& writer_;
  int64_t total_;
  const ConvertProgress& progress_;
  int64_t done_ = 0;
  std::vector<float> floats_;
  std::vector<BF16> rounded_;
};

}  // namespace

int64_t Elements(const TensorSpec& spec) {
  int64_t product = 1;
  for (const int64_t size : spec.shape) product *= size;
  return product;
}

absl::Status CheckExpansion(const std::vector<TensorSpec>& specs, uint64_t file_bytes) {
  uint64_t total = 0;
  for (const TensorSpec& spec : specs) {
    total += static_cast<uint64_t>(Elements(spec)) * sizeof(float);
  }
  if (total / 4 <= file_bytes) return absl::OkStatus();
  return InvalidArgument("its tensors would take " + std::to_string(total) +
                         " bytes, the file has " + std::to_string(file_bytes) +
                         "; expected at most 4 times the file");
}

absl::Status WriteTensors(TensorReader& reader, const std::vector<TensorSpec>& specs,
                          const std::string& path, const ConvertProgress& progress) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer,
                              SafetensorsWriter::Create(path, specs, {{"format", "pt"}}));
  TensorStream stream(reader, *writer, TotalBytes(specs), progress);
  for (const TensorSpec& spec : specs) {
    HIPPODROME_RETURN_IF_ERROR(stream.Copy(spec));
  }
  return writer->Finish();
}

}  // namespace hippodrome
