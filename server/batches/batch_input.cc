#include "server/batches/batch_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/base/xxh3.h"
#include "server/batches/line_reader.h"
#include "server/json/json_fields.h"
#include "server/json/json_requests.h"

namespace hippodrome {
namespace {

constexpr size_t kMostErrors = 20;
constexpr size_t kMostCustomIdBytes = 512;

constexpr std::string_view kEndpoints[] = {kCompletionsPath,
                                           "/v1/embeddings",
                                           "/predict",
                                           "/embed",
                                           "/embed_all",
                                           "/fill_mask",
                                           "/token_classification",
                                           "/question_answering",
                                           "/rerank"};

constexpr const char* kLineFields[] = {"custom_id", "method", "url", "body"};

absl::StatusOr<std::string> NeededText(const Json& object, const char* name) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto text, TextField(object, name));
  if (!text) return FieldError(name, "it is missing");
  return *text;
}

absl::Status CheckFieldNames(const Json& line) {
  for (const auto& [name, value] : line.items()) {
    const auto is = [&, &n = name](const char* field) { return n == field; };
    if (std::none_of(std::begin(kLineFields), std::end(kLineFields), is)) {
      return FieldError(name, "a line has custom_id, method, url and body alone");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CustomId(const Json& line) {
  HIPPODROME_ASSIGN_OR_RETURN(std::string id, NeededText(line, "custom_id"));
  if (!id.empty() && id.size() <= kMostCustomIdBytes) return id;
  return FieldError(
      "custom_id", fmt::format("it has {} bytes, expected 1 to {}", id.size(), kMostCustomIdBytes));
}

absl::Status CheckTarget(const Json& line, const std::string& endpoint) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string method, NeededText(line, "method"));
  if (method != "POST") return FieldError("method", "expected \"POST\"");
  HIPPODROME_ASSIGN_OR_RETURN(const std::string url, NeededText(line, "url"));
  if (url == endpoint) return absl::OkStatus();
  return FieldError("url", "expected \"" + endpoint + "\", the endpoint of the batch");
}

uint64_t SeedOf(const std::string& line) {
  Xxh3 checksum;
  checksum.Add(line);
  return std::stoull(checksum.Hex().substr(0, 16), nullptr, 16);
}

class InputCheck {
 public:
  explicit InputCheck(const std::string& endpoint) : endpoint_(endpoint) {}

  void Add(const InputLine& line);
  BatchInput Finish();

 private:
  void Fail(const char* code, const std::string& message, const std::string& param = "");

  const std::string& endpoint_;
  std::unordered_set<std::string> ids_;
  BatchInput input_;
};

void InputCheck::Fail(const char* code, const std::string& message, const std::string& param) {
  if (input_.errors.size() == kMostErrors) return;
  input_.errors.push_back({code, message, input_.lines, param});
}

void InputCheck::Add(const InputLine& line) {
  ++input_.lines;
  if (line.too_long) return Fail("line_too_long", "the line is too long");
  absl::StatusOr<BatchLine> parsed = ParseBatchLine(line.text, endpoint_);
  if (!parsed.ok()) {
    const std::string field = Field(parsed.status());
    return Fail(field.empty() ? "invalid_json_line" : "invalid_field", Message(parsed.status()),
                field);
  }
  if (ids_.insert(std::move(parsed->custom_id)).second) return;
  Fail("duplicate_custom_id", "custom_id: another line has it too", "custom_id");
}

BatchInput InputCheck::Finish() {
  if (input_.lines == 0) Fail("empty_file", "the input has no lines");
  return std::move(input_);
}

}  // namespace

std::span<const std::string_view> BatchEndpoints() { return kEndpoints; }

absl::StatusOr<BatchLine> ParseBatchLine(const std::string& line, const std::string& endpoint) {
  HIPPODROME_ASSIGN_OR_RETURN(Json json, ParseObject(line, "the line"));
  HIPPODROME_RETURN_IF_ERROR(CheckFieldNames(json));
  HIPPODROME_ASSIGN_OR_RETURN(std::string custom_id, CustomId(json));
  HIPPODROME_RETURN_IF_ERROR(CheckTarget(json, endpoint));
  const auto body = json.find("body");
  if (body == json.end()) return FieldError("body", "it is missing");
  if (!body->is_object()) return WrongType("body", "an object", *body);
  if (const Json* stream = Find(*body, "stream"); stream != nullptr && *stream != false) {
    return FieldError("body.stream", "the lines of a batch are whole answers");
  }
  if (endpoint == kCompletionsPath && Find(*body, "seed") == nullptr) {
    (*body)["seed"] = SeedOf(line);
  }
  return BatchLine{std::move(custom_id), body->dump()};
}

absl::StatusOr<BatchInput> CheckBatchInput(const std::string& path, const std::string& endpoint,
                                           int64_t most_line_bytes) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto reader, LineReader::Open(path, most_line_bytes));
  InputCheck check(endpoint);
  InputLine line;
  for (int64_t lines = 0;; ++lines) {
    HIPPODROME_ASSIGN_OR_RETURN(const bool more, reader->Next(line));
    if (!more) return check.Finish();
    if (lines == kMostBatchLines) break;
    check.Add(line);
  }
  return BatchInput{.lines = 0,
                    .errors = {{"too_many_lines",
                                fmt::format("the input has more than {} lines", kMostBatchLines)}}};
}

}  // namespace hippodrome
