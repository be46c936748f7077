// The body of POST /v1/batches.
#ifndef HIPPODROME_SERVER_JSON_BATCH_JSON_H_
#define HIPPODROME_SERVER_JSON_BATCH_JSON_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/json/request_fields.h"

namespace hippodrome {

extern const RequestFields kBatchFields;

struct BatchRequest {
  std::string input_file;
  std::string endpoint;  // any text
  std::map<std::string, std::string> metadata;
};

// Errors: kInvalidArgument naming the field.
absl::StatusOr<BatchRequest> ParseBatch(const std::string& body);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_BATCH_JSON_H_
