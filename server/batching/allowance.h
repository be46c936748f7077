// What a call may take beside what the server has: the limits of its client's key.
#ifndef HIPPODROME_SERVER_BATCHING_ALLOWANCE_H_
#define HIPPODROME_SERVER_BATCHING_ALLOWANCE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace hippodrome {

// Of one call. Thread-safe.
class Allowance {
 public:
  virtual ~Allowance() = default;

  // kPermissionDenied for a model that the key may not run.
  virtual absl::Status MayRun(const std::string& model) = 0;
  // Adds to what the call reserves, until it is over: of a decoder, the prompt's tokens and those
  // that may follow, and the bytes of Footprint; of an encoder, tokens with their padding, and
  // bytes of outputs. Errors: kOutOfRange for a call that reserves more than its key ever may,
  // kResourceExhausted where there is too little left of that now. REQUIRES: both >= 0.
  virtual absl::Status Reserve(int64_t tokens, int64_t bytes) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_ALLOWANCE_H_
