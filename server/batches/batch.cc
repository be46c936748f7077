#include "server/batches/batch.h"

#include <algorithm>
#include <iterator>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

using OrderedJson = nlohmann::ordered_json;
using nlohmann::json;

// In the order of BatchStatus.
constexpr const char* kStatusNames[kBatchStatuses] = {"validating", "failed",    "in_progress",
                                                      "finalizing", "completed", "expired",
                                                      "cancelling", "cancelled"};

std::optional<BatchStatus> StatusOf(const std::string& name) {
  const auto* const found = std::find(std::begin(kStatusNames), std::end(kStatusNames), name);
  if (found == std::end(kStatusNames)) return std::nullopt;
  return static_cast<BatchStatus>(found - std::begin(kStatusNames));
}

OrderedJson TextOrNothing(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

OrderedJson NumberOrNothing(int64_t number) {
  return number == 0 ? OrderedJson(nullptr) : OrderedJson(number);
}

OrderedJson ErrorsJson(const std::vector<BatchError>& errors) {
  if (errors.empty()) return nullptr;
  OrderedJson data = OrderedJson::array();
  for (const BatchError& error : errors) {
    data.push_back({{"code", error.code},
                    {"line", NumberOrNothing(error.line)},
                    {"message", error.message},
                    {"param", TextOrNothing(error.param)}});
  }
  return {{"object", "list"}, {"data", std::move(data)}};
}

OrderedJson TokensJson(const CallTokens& tokens) {
  return {{"input_tokens", tokens.prompt},
          {"input_tokens_details", {{"cached_tokens", 0}}},
          {"output_tokens", tokens.generated},
          {"output_tokens_details", {{"reasoning_tokens", 0}}},
          {"total_tokens", tokens.prompt + tokens.generated}};
}

std::string TextMember(const json& object, const char* name) {
  const json& value = object.at(name);
  return value.is_null() ? "" : value.get<std::string>();
}

int64_t NumberMember(const json& object, const char* name) {
  const json& value = object.at(name);
  return value.is_null() ? 0 : value.get<int64_t>();
}

// What `read` makes of the object that `text` is.
template <typename Read>
auto ReadObject(const std::string& text, const Read& read)
    -> absl::StatusOr<decltype(read(json()))> {
  try {
    return read(json::parse(text));
  } catch (const json::exception& error) {
    return InvalidArgument(error.what());
  }
}

std::vector<BatchError> ReadErrors(const json& errors) {
  std::vector<BatchError> read;
  if (errors.is_null()) return read;
  for (const json& error : errors.at("data")) {
    read.push_back({TextMember(error, "code"), TextMember(error, "message"),
                    NumberMember(error, "line"), TextMember(error, "param")});
  }
  return read;
}

LineCounts ReadCounts(const json& batch) {
  const json& counts = batch.at("request_counts");
  const json& usage = batch.at("usage");
  return {counts.at("completed"),
          counts.at("failed"),
          {.prompt = usage.at("input_tokens"), .generated = usage.at("output_tokens")}};
}

void ReadTimes(const json& object, Batch& batch) {
  for (size_t i = 0; i < kBatchStatuses; ++i) {
    const bool made = i == static_cast<size_t>(BatchStatus::kValidating);
    const std::string name = made ? "created" : kStatusNames[i];
    batch.times[i] = NumberMember(object, (name + "_at").c_str());
  }
}

}  // namespace

// Clients name files, and in any bytes.
std::string DumpObject(const OrderedJson& object) {
  return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

const char* Name(BatchStatus status) { return kStatusNames[static_cast<size_t>(status)]; }

std::span<const char* const> BatchStatusNames() { return kStatusNames; }

bool IsFinal(BatchStatus status) {
  return status == BatchStatus::kFailed || status == BatchStatus::kCompleted ||
         status == BatchStatus::kExpired || status == BatchStatus::kCancelled;
}

OrderedJson FileJson(const StoredFile& file) {
  return {{"id", file.id},
          {"object", "file"},
          {"bytes", file.bytes},
          {"created_at", file.created_at},
          {"expires_at", nullptr},
          {"filename", file.name},
          {"purpose", file.purpose},
          {"status", "processed"},
          {"status_details", nullptr}};
}

OrderedJson BatchJson(const Batch& batch) {
  const auto at = [&](BatchStatus status) { return NumberOrNothing(batch.at(status)); };
  OrderedJson json = {{"id", batch.id},
                      {"object", "batch"},
                      {"endpoint", batch.endpoint},
                      {"errors", ErrorsJson(batch.errors)},
                      {"input_file_id", batch.input_file},
                      {"completion_window", "24h"},
                      {"status", Name(batch.status)},
                      {"output_file_id", TextOrNothing(batch.output_file)},
                      {"error_file_id", TextOrNothing(batch.error_file)},
                      {"created_at", at(BatchStatus::kValidating)},
                      {"in_progress_at", at(BatchStatus::kInProgress)},
                      {"expires_at", batch.expires_at},
                      {"finalizing_at", at(BatchStatus::kFinalizing)},
                      {"completed_at", at(BatchStatus::kCompleted)},
                      {"failed_at", at(BatchStatus::kFailed)},
                      {"expired_at", at(BatchStatus::kExpired)},
                      {"cancelling_at", at(BatchStatus::kCancelling)},
                      {"cancelled_at", at(BatchStatus::kCancelled)}};
  json["request_counts"] = {{"total", batch.total},
                            {"completed", batch.counts.completed},
                            {"failed", batch.counts.failed}};
  json["usage"] = TokensJson(batch.counts.tokens);
  json["metadata"] = batch.metadata.empty() ? OrderedJson(nullptr) : OrderedJson(batch.metadata);
  return json;
}

std::string WriteStoredFile(const StoredFile& file) {
  return DumpObject({{"owner", file.owner}, {"number", file.number}, {"file", FileJson(file)}});
}

std::string WriteStoredBatch(const Batch& batch) {
  return DumpObject({{"owner", batch.owner},
                     {"number", batch.number},
                     {"outcome", batch.outcome ? OrderedJson(Name(*batch.outcome)) : OrderedJson()},
                     {"batch", BatchJson(batch)}});
}

absl::StatusOr<StoredFile> ReadStoredFile(const std::string& text) {
  return ReadObject(text, [](const json& stored) {
    const json& file = stored.at("file");
    return StoredFile{.id = file.at("id"),
                      .owner = stored.at("owner"),
                      .name = file.at("filename"),
                      .purpose = file.at("purpose"),
                      .bytes = file.at("bytes"),
                      .created_at = file.at("created_at"),
                      .number = stored.at("number")};
  });
}

absl::StatusOr<Batch> ReadStoredBatch(const std::string& text) {
  HIPPODROME_ASSIGN_OR_RETURN(
      const auto batch, ReadObject(text, [](const json& stored) -> std::optional<Batch> {
        const json& object = stored.at("batch");
        const std::optional<BatchStatus> status = StatusOf(object.at("status"));
        const std::string outcome = TextMember(stored, "outcome");
        if (!status || (!outcome.empty() && !StatusOf(outcome))) return std::nullopt;
        Batch batch;
        batch.id = object.at("id");
        batch.owner = stored.at("owner");
        batch.number = stored.at("number");
        batch.endpoint = object.at("endpoint");
        batch.input_file = object.at("input_file_id");
        if (!object.at("metadata").is_null()) object.at("metadata").get_to(batch.metadata);
        batch.status = *status;
        batch.outcome = StatusOf(outcome);
        ReadTimes(object, batch);
        batch.expires_at = object.at("expires_at");
        batch.total = object.at("request_counts").at("total");
        batch.counts = ReadCounts(object);
        batch.output_file = TextMember(object, "output_file_id");
        batch.error_file = TextMember(object, "error_file_id");
        batch.errors = ReadErrors(object.at("errors"));
        return batch;
      }));
  if (!batch) return InvalidArgument("its status is none that is known");
  return *batch;
}

}  // namespace hippodrome
