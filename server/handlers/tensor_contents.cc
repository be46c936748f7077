#include "server/handlers/tensor_contents.h"

#include <fmt/format.h>

#include <bit>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kLengthBytes = 4;

uint32_t ReadLength(std::string_view raw) {
  uint32_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint32_t{static_cast<unsigned char>(raw[i])} << (8 * i);
  }
  return length;
}

void AppendLength(size_t length, std::string& raw) {
  for (size_t i = 0; i < kLengthBytes; ++i) raw += static_cast<char>(length >> (8 * i) & 0xFF);
}

template <typename Values>
std::string RawNumbers(const Values& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(*values.data())};
}

absl::Status AtInput(const std::string& name, const absl::Status& status) {
  return FieldError(name, Message(status));
}

absl::StatusOr<std::vector<std::string>> TakeTexts(const inference::ModelInferRequest& request,
                                                   int index, int64_t most) {
  const auto& input = request.inputs(index);
  if (input.datatype() != "BYTES") {
    return InvalidArgument("the datatype is '" + input.datatype() + "', expected BYTES");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t count, CountElements(input.shape(), most));
  if (request.raw_input_contents_size() > 0) {
    return SplitTexts(request.raw_input_contents(index), count);
  }
  const auto& texts = input.contents().bytes_contents();
  if (texts.size() != count) {
    return InvalidArgument(fmt::format("{} texts, but the shape says {}", texts.size(), count));
  }
  return std::vector<std::string>(texts.begin(), texts.end());
}

}  // namespace

absl::StatusOr<int64_t> CountElements(const TensorShape& shape, int64_t most) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0) return InvalidArgument(fmt::format("the shape has the size {}", size));
    if (size > 0 && count > most / size) {
      return InvalidArgument(fmt::format("the shape has more than {} elements", most));
    }
    count *= size;
  }
  return count;
}

absl::StatusOr<std::vector<std::string>> ReadTexts(const inference::ModelInferRequest& request,
                                                   int index, int64_t most) {
  const int raw = request.raw_input_contents_size();
  if (raw > 0 && raw != request.inputs_size()) {
    return FieldError("raw_input_contents",
                      fmt::format("there are {}, but {} inputs", raw, request.inputs_size()));
  }
  if (raw > 0 && request.inputs(index).has_contents()) {
    return FieldError(request.inputs(index).name(), "it has contents beside raw_input_contents");
  }
  auto texts = TakeTexts(request, index, most);
  if (!texts.ok()) return AtInput(request.inputs(index).name(), texts.status());
  return texts;
}

absl::StatusOr<std::vector<std::string>> SplitTexts(std::string_view raw, int64_t count) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    if (raw.size() < kLengthBytes) {
      return InvalidArgument(fmt::format("the bytes end before text {} of {}", i, count));
    }
    const uint32_t length = ReadLength(raw);
    raw.remove_prefix(kLengthBytes);
    if (length > raw.size()) {
      return InvalidArgument(
          fmt::format("text {} has {} bytes, but {} are left", i, length, raw.size()));
    }
    texts.emplace_back(raw.substr(0, length));
    raw.remove_prefix(length);
  }
  if (raw.empty()) return texts;
  return InvalidArgument(fmt::format("{} bytes behind the {} texts", raw.size(), count));
}

std::string RawContents(const inference::ModelInferResponse::InferOutputTensor& output) {
  const inference::InferTensorContents& contents = output.contents();
  if (output.datatype() == "FP32") return RawNumbers(contents.fp32_contents());
  if (output.datatype() == "INT32") return RawNumbers(contents.int_contents());
  if (output.datatype() == "INT64") return RawNumbers(contents.int64_contents());
  std::string raw;
  for (const std::string& text : contents.bytes_contents()) {
    AppendLength(text.size(), raw);
    raw += text;
  }
  return raw;
}

void MakeRaw(inference::ModelInferResponse& response) {
  for (auto& output : *response.mutable_outputs()) {
    response.add_raw_output_contents(RawContents(output));
    output.clear_contents();
  }
}

}  // namespace hippodrome
