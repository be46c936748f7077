// Files of JSON objects, one a line, that are their own journal.
#ifndef HIPPODROME_SERVER_BATCHES_JSON_RECORDS_H_
#define HIPPODROME_SERVER_BATCHES_JSON_RECORDS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace hippodrome {

// Called with a record, and with where it ends in the file; false: it and the rest are no good.
using TakeRecord = std::function<bool(const std::string& record, int64_t end)>;

// Gives all whole records of the file at `path` to `take`, and returns where the last one ends that
// it took. What is behind was torn when the writer was killed or power was lost, and should be cut
// off. Errors: those of LineReader.
absl::StatusOr<int64_t> ReadRecords(const std::string& path, const TakeRecord& take);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHES_JSON_RECORDS_H_
