#include "server/batches/batch_journal.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "server/batches/json_records.h"

namespace hippodrome {
namespace {

using nlohmann::json;

struct FoundRecord {
  int64_t number = 0;  // of its line
  int64_t end = 0;     // in the file
  CallTokens tokens;
};

// `name` without its "batch_".
std::string_view Digits(std::string_view batch) { return batch.substr(batch.find('_') + 1); }

std::string RecordHead(const std::string& batch) {
  return fmt::format("{{\"id\":\"batch_req_{}_", Digits(batch));
}

// Nothing for what is no record of the batch.
std::optional<int64_t> LineOf(std::string_view record, std::string_view head) {
  if (!record.starts_with(head)) return std::nullopt;
  record.remove_prefix(head.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(record.data(), record.data() + record.size(), number);
  if (error != std::errc() || end == record.data() + record.size() || *end != '"') {
    return std::nullopt;
  }
  return number;
}

// Of the "usage" in a body, which is its last; quotes within texts are escaped.
CallTokens TokensOf(std::string_view body) {
  constexpr std::string_view kUsage = "\"usage\":";
  const size_t begin = body.rfind(kUsage);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = body.substr(begin + kUsage.size());
  const json usage = json::parse(rest.substr(0, rest.find('}') + 1), nullptr, false);
  if (!usage.is_object()) return {};
  const auto number = [&](const char* name) {
    const auto found = usage.find(name);
    return found != usage.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  return {.prompt = number("prompt_tokens"), .generated = number("completion_tokens")};
}

absl::StatusOr<std::vector<FoundRecord>> FindRecords(const std::string& path,
                                                     const std::string& head) {
  std::vector<FoundRecord> found;
  const auto take = [&](const std::string& record, int64_t end) {
    const std::optional<int64_t> number = LineOf(record, head);
    const int64_t last = found.empty() ? 0 : found.back().number;
    if (!number || *number <= last) return false;
    found.push_back({*number, end, TokensOf(record)});
    return true;
  };
  HIPPODROME_RETURN_IF_ERROR(ReadRecords(path, take).status());
  return found;
}

}  // namespace

std::string LineId(const std::string& batch, int64_t number) {
  return fmt::format("batch_req_{}_{}", Digits(batch), number);
}

std::string LineRequestId(const std::string& batch, int64_t number) {
  return fmt::format("req_{}_{}", Digits(batch), number);
}

absl::StatusOr<std::unique_ptr<BatchJournal>> BatchJournal::Open(const std::string& batch,
                                                                 const std::string& output_path,
                                                                 const std::string& error_path) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> output, AppendFile::Open(output_path));
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> errors, AppendFile::Open(error_path));
  auto journal =
      std::unique_ptr<BatchJournal>(new BatchJournal(batch, std::move(output), std::move(errors)));
  HIPPODROME_RETURN_IF_ERROR(journal->Recover());
  return journal;
}

// A loss of power may leave more of one file than of the other.
absl::Status BatchJournal::Recover() {
  const std::string head = RecordHead(batch_);
  HIPPODROME_ASSIGN_OR_RETURN(const auto output, FindRecords(output_->path(), head));
  HIPPODROME_ASSIGN_OR_RETURN(const auto errors, FindRecords(errors_->path(), head));
  auto answer = output.begin();
  auto error = errors.begin();
  int64_t output_end = 0;
  int64_t error_end = 0;
  for (int64_t next = 1;; ++next) {
    if (answer != output.end() && answer->number == next) {
      output_end = answer->end;
      counts_.tokens.prompt += answer->tokens.prompt;
      counts_.tokens.generated += answer->tokens.generated;
      ++counts_.completed;
      ++answer;
    } else if (error != errors.end() && error->number == next) {
      error_end = error->end;
      ++counts_.failed;
      ++error;
    } else {
      break;
    }
  }
  HIPPODROME_RETURN_IF_ERROR(output_->Truncate(output_end));
  return errors_->Truncate(error_end);
}

std::string BatchJournal::Record(const std::string& custom_id, const LineResult& result) const {
  const int64_t number = lines() + 1;
  std::string record = fmt::format("{{\"id\":\"{}\",\"custom_id\":{},", LineId(batch_, number),
                                   json(custom_id).dump());
  if (result.http_status == 0) return record + "\"response\":null,\"error\":" + result.body + "}\n";
  record += fmt::format("\"response\":{{\"status_code\":{},\"request_id\":\"{}\",\"body\":",
                        result.http_status, LineRequestId(batch_, number));
  return record + result.body + "},\"error\":null}\n";
}

absl::Status BatchJournal::Append(const std::string& record, const LineResult& result) {
  if (result.http_status != 200) {
    ++counts_.failed;
    return errors_->Append(record);
  }
  const CallTokens tokens = TokensOf(result.body);
  counts_.tokens.prompt += tokens.prompt;
  counts_.tokens.generated += tokens.generated;
  ++counts_.completed;
  return output_->Append(record);
}

absl::Status BatchJournal::Flush() {
  HIPPODROME_RETURN_IF_ERROR(output_->Flush());
  return errors_->Flush();
}

absl::Status BatchJournal::Sync() {
  HIPPODROME_RETURN_IF_ERROR(output_->Sync());
  return errors_->Sync();
}

}  // namespace hippodrome
