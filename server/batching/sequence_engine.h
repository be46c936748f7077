// What the batcher asks of a model: the part of Generator that it uses, as an interface.
#ifndef HIPPODROME_SERVER_BATCHING_SEQUENCE_ENGINE_H_
#define HIPPODROME_SERVER_BATCHING_SEQUENCE_ENGINE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/generator.h"

namespace hippodrome {

// The contracts are those of Generator. What is const before used() reads constants alone and may
// be called on any thread; all others belong to the batcher's loop thread.
class SequenceEngine {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~SequenceEngine() = default;

  virtual Footprint Cost(int64_t prompt_tokens, int64_t max_tokens) const = 0;
  virtual Footprint capacity() const = 0;
  virtual absl::Status Validate(const GenerationRequest& request) const = 0;
  // Arithmetic() of what the engine computes.
  virtual std::string arithmetic() const = 0;
  // What its saved states look like.
  virtual const StateLayout& state_layout() const = 0;

  virtual Footprint used() const = 0;
  virtual bool prefilling() const = 0;
  virtual int64_t decoding() const = 0;
  virtual int64_t ready() const = 0;
  virtual DraftCounts drafts() const = 0;
  virtual PrefixCounts prefixes() const = 0;
  virtual absl::StatusOr<SequenceId> Admit(GenerationRequest request) = 0;
  virtual int64_t Remaining(SequenceId sequence) const = 0;
  virtual void Prefill(Clock::time_point until, std::vector<TokenEvent>& events) = 0;
  virtual int64_t stepped() const = 0;
  virtual void Step(std::vector<TokenEvent>& events) = 0;
  virtual absl::StatusOr<SavedState> Save(SequenceId sequence) const = 0;
  virtual int64_t Cached(SequenceId sequence) const = 0;
  virtual void Release(SequenceId sequence) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_SEQUENCE_ENGINE_H_
