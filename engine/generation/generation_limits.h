// Which requests a model can run, and what each reserves.
#ifndef HIPPODROME_ENGINE_GENERATION_GENERATION_LIMITS_H_
#define HIPPODROME_ENGINE_GENERATION_GENERATION_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "engine/config/config.h"
#include "engine/generator.h"
#include "engine/state/decode_state.h"
#include "engine/state/saved_state.h"

namespace hippodrome {

class HybridH3;

// Constants of a model and its state, which must outlive this: any thread may ask.
class GenerationLimits {
 public:
  // `sequences`: that run at once, at most; `chunk`: tokens of a prompt that are taken in at once.
  GenerationLimits(const HybridH3& model, const DecodeState& state, int64_t sequences,
                   int64_t chunk);

  // What saved states look like.
  const StateLayout& layout() const { return layout_; }
  // All that there is for sequences.
  Footprint capacity() const { return Bytes(sequences_, pages_); }

  // So many slots and pages with their bytes; saturates.
  Footprint Bytes(int64_t slots, int64_t pages) const;
  // As Generator::Cost() and Generator::Validate().
  Footprint Cost(int64_t tokens_before, int64_t max_tokens) const;
  absl::Status Validate(const GenerationRequest& request) const;

 private:
  absl::Status ValidateStart(const GenerationRequest& request) const;
  absl::Status ValidateMarks(const GenerationRequest& request) const;
  absl::Status ValidateScoring(const GenerationRequest& request) const;
  absl::Status ValidateCheckpoints(const GenerationRequest& request) const;
  absl::Status ValidateLength(const GenerationRequest& request) const;

  const H3Config& config_;
  const StateLayout layout_;
  const int64_t sequences_;
  const int64_t chunk_;
  const int64_t pages_;
  const int64_t slot_bytes_;
  const int64_t page_bytes_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATION_GENERATION_LIMITS_H_
