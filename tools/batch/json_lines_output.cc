#include <fmt/format.h>

#include <utility>

#include "engine/base/status.h"
#include "server/batches/append_file.h"
#include "server/batches/json_records.h"
#include "server/json/json_responses.h"
#include "tools/batch/batch_output.h"

namespace hippodrome {
namespace {

class JsonLinesOutput : public BatchOutput {
 public:
  explicit JsonLinesOutput(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}

  absl::Status Recover();

  BatchCounts found() const override { return found_; }
  absl::Status Append(const std::string& id, const absl::StatusOr<LineAnswer>& answer) override;
  absl::Status Flush() override { return file_->Flush(); }
  absl::Status Sync() override { return file_->Sync(); }
  absl::Status Finish() override { return file_->Sync(); }

 private:
  std::unique_ptr<AppendFile> file_;
  BatchCounts found_;
};

absl::Status JsonLinesOutput::Recover() {
  if (file_->path() == "-") return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t whole,
                              ReadRecords(file_->path(), [&](const std::string& record, int64_t) {
                                ++found_.lines;
                                if (IsErrorRecord(record)) ++found_.errors;
                                return true;
                              }));
  return file_->Truncate(whole);
}

absl::Status JsonLinesOutput::Append(const std::string& id,
                                     const absl::StatusOr<LineAnswer>& answer) {
  const std::string begin = id.empty() ? "{" : "{\"id\":" + id + ",";
  if (answer.ok()) return file_->Append(begin + "\"result\":" + answer->json + "}\n");
  return file_->Append(begin + ErrorBody(answer.status()).substr(1) + "\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchOutput>> OpenJsonLines(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, AppendFile::Open(path));
  auto output = std::make_unique<JsonLinesOutput>(std::move(file));
  HIPPODROME_RETURN_IF_ERROR(output->Recover());
  return output;
}

bool IsErrorRecord(std::string_view record) {
  constexpr std::string_view kId = "{\"id\":";
  if (record.empty()) return false;
  size_t next = 1;
  if (record.starts_with(kId)) {
    next = kId.size();
    if (record.substr(next, 1) == "\"") {
      for (++next; next < record.size() && record[next] != '"'; ++next) {
        if (record[next] == '\\') ++next;
      }
    }
    next = record.find(',', next);
    if (next == std::string_view::npos) return false;
    ++next;
  }
  return record.substr(next).starts_with("\"error\":");
}

}  // namespace hippodrome
