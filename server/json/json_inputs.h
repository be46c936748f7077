// What the request bodies of all encoder tasks have in common.
#ifndef HIPPODROME_SERVER_JSON_JSON_INPUTS_H_
#define HIPPODROME_SERVER_JSON_JSON_INPUTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hippodrome/v1/encoding.pb.h"
#include "server/json/json_fields.h"

namespace hippodrome {

using EncodingInputs = google::protobuf::RepeatedPtrField<v1::EncodingInput>;

// All errors are kInvalidArgument naming the field.

// ParseObject(), with the members of "parameters" moved beside the others, where huggingface_hub
// sends them for some tasks.
absl::StatusOr<Json> ParseTask(const std::string& body);

// The member `field`, which must be there.
absl::StatusOr<const Json*> RequiredField(const Json& body, const char* field);

// These append what they read to `inputs`; true if it was a batch, false if a single input.
// "a" or ["a", "b", ...].
absl::StatusOr<bool> ReadTexts(const Json& body, EncodingInputs& inputs);
// "a", the pair ["a", "b"], or the batch [["a"], ["a", "b"], ...], as TEI takes them.
absl::StatusOr<bool> ReadTextsOrPairs(const Json& body, EncodingInputs& inputs);

// The member `field`, "a", [1, 2], or an array of those, appended to `inputs`.
absl::Status ReadTextsOrIds(const Json& body, const char* field, EncodingInputs& inputs);

// "truncate": true or false, "truncation_direction": "left" or "right" in any case.
absl::Status ReadTruncation(const Json& body, v1::Truncate& truncate);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_JSON_INPUTS_H_
