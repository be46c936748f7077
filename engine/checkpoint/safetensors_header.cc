#include "engine/checkpoint/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/base/one_line.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostEntries = 262144;
constexpr size_t kMostDimensions = 16;

std::optional<DType> DTypeNamed(const std::string& name) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                      DType::kI8, DType::kU8}) {
    if (name == Name(dtype)) return dtype;
  }
  return std::nullopt;
}

// Builds a header from the events of the parser, without a document in between: a hostile header
// would take many times its size as one.
class HeaderBuilder final : public Json::json_sax_t {
 public:
  SafetensorsHeader header;
  std::string error;

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kStart:
        return Enter(Place::kTop);
      case Place::kTop:
        return name_ == "__metadata__" ? StartMetadata() : StartTensor();
      default:
        return Unexpected("an object");
    }
  }

  bool key(std::string& key) override {
    (place_ == Place::kTop ? name_ : field_) = std::move(key);
    return true;
  }

  bool end_object() override {
    switch (place_) {
      case Place::kTensor:
        return EndTensor();
      case Place::kMetadata:
        return Enter(Place::kTop);
      default:
        return true;
    }
  }

  bool start_array(size_t) override {
    std::optional<std::vector<int64_t>>* const list = place_ == Place::kTensor ? List() : nullptr;
    if (list == nullptr) return Unexpected("an array");
    if (list->has_value()) return Fail("duplicate " + field_);
    list->emplace();
    return Enter(Place::kList);
  }

  bool end_array() override { return Enter(Place::kTensor); }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) return AddMetadata(text);
    if (place_ != Place::kTensor || field_ != "dtype") return Unexpected("a string");
    if (dtype_.has_value()) return Fail("duplicate dtype");
    dtype_ = DTypeNamed(text);
    if (dtype_.has_value()) return true;
    return Fail("dtype " + OneLine(text) +
                " is not supported, expected F64, F32, F16, BF16, I64, I32, I8 or U8");
  }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kList) return Unexpected("a number");
    if (value > INT64_MAX) return Fail(field_ + " has a number beyond 2^63");
    std::vector<int64_t>& list = **List();
    if (list.size() == kMostDimensions) {
      return Fail(field_ + " has more than 16 numbers");
    }
    list.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool number_integer(int64_t) override { return Unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { return Unexpected("a fraction"); }
  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool binary(Json::binary_t&) override { return Unexpected("binary data"); }

  bool parse_error(size_t, const std::string&, const Json::exception& exception) override {
    const std::string what = exception.what();
    error = "the header is not JSON: " + OneLine(what.substr(what.find(']') + 2));
    return false;
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kList };

  bool Enter(Place place) {
    place_ = place;
    return true;
  }

  bool Fail(const std::string& reason) {
    error = "tensor \"" + OneLine(name_) + "\": " + reason;
    return false;
  }

  bool Unexpected(const std::string& what) {
    if (place_ == Place::kStart || place_ == Place::kTop) {
      error = "the header has " + what + " where an object is expected";
      return false;
    }
    return Fail("unexpected " + what + " at \"" + OneLine(field_) + "\"");
  }

  // The list that `field_` names, or null.
  std::optional<std::vector<int64_t>>* List() {
    if (field_ == "shape") return &shape_;
    return field_ == "data_offsets" ? &offsets_ : nullptr;
  }

  bool StartMetadata() {
    if (!header.metadata.empty()) return Fail("the name appears twice");
    return Enter(Place::kMetadata);
  }

  bool AddMetadata(const std::string& text) {
    if (header.metadata.size() == kMostEntries) return Fail("too many entries");
    header.metadata[field_] = text;
    return true;
  }

  bool StartTensor() {
    if (header.entries.contains(name_)) return Fail("the name appears twice");
    if (header.entries.size() == kMostEntries) return Fail("too many tensors");
    dtype_.reset();
    shape_.reset();
    offsets_.reset();
    return Enter(Place::kTensor);
  }

  bool EndTensor() {
    if (!dtype_) return Fail("dtype is missing");
    if (!shape_) return Fail("shape is missing");
    if (!offsets_ || offsets_->size() != 2) return Fail("expected two data_offsets");
    SafetensorsEntry& entry = header.entries[name_];
    entry.dtype = *dtype_;
    entry.shape = *std::move(shape_);
    entry.begin = static_cast<uint64_t>((*offsets_)[0]);
    entry.end = static_cast<uint64_t>((*offsets_)[1]);
    return Enter(Place::kTop);
  }

  Place place_ = Place::kStart;
  std::string name_;   // of the tensor
  std::string field_;  // within it
  std::optional<DType> dtype_;
  std::optional<std::vector<int64_t>> shape_;
  std::optional<std::vector<int64_t>> offsets_;
};

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json) {
  HeaderBuilder builder;
  if (!Json::sax_parse(json.begin(), json.end(), &builder)) return InvalidArgument(builder.error);
  return std::move(builder.header);
}

absl::StatusOr<uint64_t> TensorBytes(DType dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = static_cast<int64_t>(SizeOf(dtype));
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) {
      return InvalidArgument("shape " + DimensionsText(shape) + " is too large or negative");
    }
  }
  return static_cast<uint64_t>(bytes);
}

std::string DimensionsText(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

}  // namespace hippodrome
