// The one check of what a client sends, for both transports.
#ifndef HIPPODROME_SERVER_HANDLERS_VALIDATION_H_
#define HIPPODROME_SERVER_HANDLERS_VALIDATION_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "hippodrome/v1/generation.pb.h"
#include "server/options.h"

namespace hippodrome {

// Every field of `request` against its range in generation.proto and against `limits`, apart from
// the values of token ids. Errors: kInvalidArgument naming the field (see FieldError).
absl::Status ValidateRequest(const v1::GenerateRequest& request, const RequestLimits& limits);

// Each id is in [0, vocab_size). Errors: kInvalidArgument with the first one that is not.
absl::Status ValidateTokenIds(std::span<const int32_t> ids, int64_t vocab_size,
                              const std::string& field);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_VALIDATION_H_
