// A SequenceEngine that repeats its prompts, with gates that hold it in a phase.
#ifndef HIPPODROME_TESTS_TESTING_FAKE_ENGINE_H_
#define HIPPODROME_TESTS_TESTING_FAKE_ENGINE_H_

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "server/batching/sequence_engine.h"

namespace hippodrome {

struct FakeEngineOptions {
  int64_t slots = 4;
  int64_t pages = 64;        // of 16 tokens, 10 bytes each; a slot has 100 bytes
  int64_t chunk_tokens = 8;  // of a prompt per call of Prefill()
  int64_t vocab_size = 257;
};

inline constexpr int32_t kFakeEndOfText = 256;

// The log probability of `token` behind `previous`: it depends on both, and is no short decimal.
// The likeliest token behind `previous` is the one with the next id.
float FakeLogProbability(int32_t previous, int32_t token);
// As the engine gives them, with `top` of 257 alternatives.
TokenScores FakeScores(int32_t previous, int32_t token, int32_t top);

enum class FakeFault { kNone, kValidate, kAdmit, kPrefill, kStep };

// Token i of a sequence is prompt[i % size]; kFakeEndOfText ends it. Admit() without room, and
// calls from a second thread, fail the process.
class FakeEngine : public SequenceEngine {
 public:
  explicit FakeEngine(const FakeEngineOptions& options = {}) : options_(options) {}

  // While set, prefill or decoding makes no progress.
  std::atomic<bool> hold_prefill = false;
  std::atomic<bool> hold_decode = false;
  // Each step takes a millisecond.
  std::atomic<bool> slow = false;
  // Those that decode step beside prefill.
  std::atomic<bool> steps_beside_prefill = false;
  // The next step throws DeviceError.
  std::atomic<bool> break_device = false;
  // The next call of this function throws std::bad_alloc.
  mutable std::atomic<FakeFault> fault = FakeFault::kNone;
  // The first byte of each prompt in the order of admission. REQUIRES: nothing runs.
  const std::string& admitted() const { return admitted_; }
  // What is in use, for any thread.
  std::atomic<int64_t> used_slots = 0;
  std::atomic<int64_t> used_pages = 0;
  std::atomic<int64_t> steps = 0;

  Footprint Cost(int64_t prompt_tokens, int64_t max_tokens) const override;
  Footprint capacity() const override;
  absl::Status Validate(const GenerationRequest& request) const override;
  std::string arithmetic() const override { return "fake"; }
  const StateLayout& state_layout() const override { return layout_; }
  Footprint used() const override;
  bool prefilling() const override;
  int64_t decoding() const override;
  int64_t ready() const override { return 0; }
  DraftCounts drafts() const override { return {}; }
  PrefixCounts prefixes() const override { return {}; }
  absl::StatusOr<SequenceId> Admit(GenerationRequest request) override;
  int64_t Remaining(SequenceId sequence) const override;
  void Prefill(Clock::time_point until, std::vector<TokenEvent>& events) override;
  int64_t stepped() const override { return stepped_; }
  void Step(std::vector<TokenEvent>& events) override;
  void Release(SequenceId sequence) override;
  absl::StatusOr<SavedState> Save(SequenceId sequence) const override;
  int64_t Cached(SequenceId) const override { return 0; }

 private:
  struct Sequence {
    GenerationRequest request;
    Footprint cost;
    int64_t prefilled = 0;
    int64_t generated = 0;
    bool finished = false;

    bool prompt_done() const { return prefilled >= static_cast<int64_t>(request.prompt.size()); }
  };

  void CheckThread() const;
  void ThrowIf(FakeFault here) const;
  TokenEvent Next(SequenceId id, Sequence& sequence);

  const FakeEngineOptions options_;
  // One array of two numbers.
  const StateLayout layout_{
      .model = "fake", .vocab_size = options_.vocab_size, .layers = {{.arrays = {{"sums", {2}}}}}};
  std::map<SequenceId, Sequence> sequences_;
  SequenceId next_id_ = 1;
  int64_t stepped_ = 0;
  std::string admitted_;
  mutable std::atomic<std::thread::id> thread_{};
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_FAKE_ENGINE_H_
