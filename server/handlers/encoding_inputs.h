// From the inputs of a call to laid-out tokens: [CLS] .. [SEP].
#ifndef HIPPODROME_SERVER_HANDLERS_ENCODING_INPUTS_H_
#define HIPPODROME_SERVER_HANDLERS_ENCODING_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/tokenizer/encode_pair.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "hippodrome/v1/encoding.pb.h"
#include "server/handlers/served_model.h"
#include "server/options.h"

namespace hippodrome {

using EncodingInputs = google::protobuf::RepeatedPtrField<v1::EncodingInput>;

// "FIELD[INDEX]".
std::string Place(const std::string& field, int64_t index);
// `status` with the place in front: a FieldError where it is kInvalidArgument.
absl::Status At(const std::string& place, const absl::Status& status);

// The one check of what goes to an encoder, as an embedding, which every model makes: what its head
// needs is for its task to ask. Errors: those of Encoder::Validate().
absl::Status CheckTokens(const EncodedText& text, const EncoderEngine& engine);

// kInvalidArgument unless there are 1 to limits.max_inputs of them.
absl::Status CheckCount(const std::string& field, int64_t count, const RequestLimits& limits);

// Every input laid out, truncated as asked, and checked against the model. Tokens are taken as they
// are, never truncated; their pieces have no place in a text. Errors are those of encoding.proto
// and name the input.
absl::StatusOr<std::vector<EncodedText>> LayOutInputs(const EncodingInputs& inputs,
                                                      const v1::Truncate& truncate,
                                                      const ServedEncoder& model,
                                                      const RequestLimits& limits);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_ENCODING_INPUTS_H_
