#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "server/batches/append_file.h"
#include "server/batches/line_reader.h"
#include "server/json/json_responses.h"
#include "tools/batch/batch_output.h"

namespace hippodrome {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are written as they are in memory");

// Room for any shape, at a multiple of 64 so that the rows can be used in place.
constexpr size_t kNpyHead = 128;
constexpr size_t kSafetensorsHead = 256;

constexpr char kNpyMagic[] = "\x93NUMPY\x01";  // version 1.0 ends with the zero of this literal

size_t HeadSize(MatrixFormat format) {
  return format == MatrixFormat::kNpy ? kNpyHead : kSafetensorsHead;
}

std::string Padded(std::string text, size_t size) {
  text.resize(size, ' ');
  return text;
}

class MatrixOutput : public BatchOutput {
 public:
  MatrixOutput(std::unique_ptr<AppendFile> rows, std::unique_ptr<AppendFile> errors,
               MatrixFormat format, int64_t columns)
      : rows_(std::move(rows)), errors_(std::move(errors)), format_(format), columns_(columns) {}

  absl::Status Recover();

  BatchCounts found() const override { return found_; }
  absl::Status Append(const std::string& id, const absl::StatusOr<LineAnswer>& answer) override;
  // The errors first: no row is there without its own.
  absl::Status Flush() override {
    HIPPODROME_RETURN_IF_ERROR(errors_->Flush());
    return rows_->Flush();
  }
  absl::Status Sync() override {
    HIPPODROME_RETURN_IF_ERROR(errors_->Sync());
    return rows_->Sync();
  }
  absl::Status Finish() override;

 private:
  int64_t RowBytes() const { return columns_ * static_cast<int64_t>(sizeof(float)); }
  absl::Status RecoverErrors();

  std::unique_ptr<AppendFile> rows_, errors_;
  const MatrixFormat format_;
  const int64_t columns_;
  BatchCounts found_;
  int64_t lines_ = 0;
};

absl::Status MatrixOutput::Recover() {
  const auto head = static_cast<int64_t>(HeadSize(format_));
  if (rows_->size() < head) {
    HIPPODROME_RETURN_IF_ERROR(rows_->Truncate(0));
    HIPPODROME_RETURN_IF_ERROR(rows_->Append(std::string(head, '\0')));
  } else {
    lines_ = found_.lines = (rows_->size() - head) / RowBytes();
    HIPPODROME_RETURN_IF_ERROR(rows_->Truncate(head + lines_ * RowBytes()));
  }
  return RecoverErrors();
}

// Leaves the errors of the rows that are there.
absl::Status MatrixOutput::RecoverErrors() {
  HIPPODROME_ASSIGN_OR_RETURN(const auto reader, LineReader::Open(errors_->path(), INT64_MAX));
  int64_t whole = 0;
  InputLine record;
  for (;;) {
    HIPPODROME_ASSIGN_OR_RETURN(const bool more, reader->Next(record));
    if (!more || !record.ended) break;
    const auto json = nlohmann::json::parse(record.text, nullptr, false);
    if (!json.is_object() || !json.contains("row") || json["row"] >= found_.lines) break;
    ++found_.errors;
    whole = reader->position();
  }
  return errors_->Truncate(whole);
}

absl::Status MatrixOutput::Append(const std::string& id, const absl::StatusOr<LineAnswer>& answer) {
  std::vector<float> row;
  if (answer.ok()) {
    row = answer->row;
  } else {
    row.assign(columns_, std::numeric_limits<float>::quiet_NaN());
    const std::string begin = id.empty() ? "" : ",\"id\":" + id;
    HIPPODROME_RETURN_IF_ERROR(errors_->Append(
        fmt::format("{{\"row\":{}{},{}\n", lines_, begin, ErrorBody(answer.status()).substr(1))));
    HIPPODROME_RETURN_IF_ERROR(errors_->Flush());
  }
  ++lines_;
  return rows_->Append({reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)});
}

absl::Status MatrixOutput::Finish() {
  HIPPODROME_RETURN_IF_ERROR(Sync());
  HIPPODROME_RETURN_IF_ERROR(rows_->Overwrite(0, MatrixHead(format_, lines_, columns_)));
  return rows_->Sync();
}

}  // namespace

std::string MatrixHead(MatrixFormat format, int64_t rows, int64_t columns) {
  if (format == MatrixFormat::kNpy) {
    constexpr uint16_t kText = kNpyHead - sizeof(kNpyMagic) - sizeof(kText);
    std::string head(kNpyMagic, sizeof(kNpyMagic));
    head.append(reinterpret_cast<const char*>(&kText), sizeof(kText));
    head += fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows,
                        columns);
    return Padded(head, kNpyHead - 1) + "\n";
  }
  constexpr uint64_t kText = kSafetensorsHead - sizeof(kText);
  std::string head(reinterpret_cast<const char*>(&kText), sizeof(kText));
  const nlohmann::json tensor = {
      {"dtype", "F32"}, {"shape", {rows, columns}}, {"data_offsets", {0, rows * columns * 4}}};
  return Padded(head + nlohmann::json{{"embeddings", tensor}}.dump(), kSafetensorsHead);
}

absl::StatusOr<std::unique_ptr<BatchOutput>> OpenMatrix(const std::string& path,
                                                        MatrixFormat format, int64_t columns) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> rows, AppendFile::Open(path));
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> errors,
                              AppendFile::Open(path + ".errors.jsonl"));
  auto output = std::make_unique<MatrixOutput>(std::move(rows), std::move(errors), format, columns);
  HIPPODROME_RETURN_IF_ERROR(output->Recover());
  return output;
}

}  // namespace hippodrome
