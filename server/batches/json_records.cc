#include "server/batches/json_records.h"

#include "engine/base/status.h"
#include "server/batches/line_reader.h"

namespace hippodrome {

// Where power was lost, there may also be zeros in the place of records.
absl::StatusOr<int64_t> ReadRecords(const std::string& path, const TakeRecord& take) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto reader, LineReader::Open(path, INT64_MAX));
  int64_t whole = 0;
  InputLine record;
  for (;;) {
    HIPPODROME_ASSIGN_OR_RETURN(const bool more, reader->Next(record));
    const std::string& text = record.text;
    if (!more || !record.ended || !text.starts_with('{') || !text.ends_with('}')) break;
    if (!take(text, reader->position())) break;
    whole = reader->position();
  }
  return whole;
}

}  // namespace hippodrome
