// An EncoderEngine whose outputs tell what it was asked, with gates that hold it.
#ifndef HIPPODROME_TESTS_TESTING_FAKE_ENCODER_H_
#define HIPPODROME_TESTS_TESTING_FAKE_ENCODER_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "server/batching/encoder_engine.h"

namespace hippodrome {

struct FakeEncoderOptions {
  EncoderHead head = EncoderHead::kSequenceClassification;
  std::vector<std::string> labels = {"bad", "good", "fair"};
  int64_t vocab_size = 100;
  int64_t hidden_size = 8;
  int64_t max_positions = 32;
  int64_t pad_to = 0;  // 0: not at all
  int64_t max_batch_tokens = 64;
};

// The outputs depend on everything in a request, and on nothing else: see Output(). Requests of one
// batch that do not belong together, and calls of Run() from a second thread, fail the process.
class FakeEncoder : public EncoderEngine {
 public:
  explicit FakeEncoder(const FakeEncoderOptions& options = {});

  // While set, Run() does not return.
  std::atomic<bool> hold = false;
  // The next Run() throws DeviceError.
  std::atomic<bool> break_device = false;
  // Run() throws std::bad_alloc for inputs of so many tokens.
  std::atomic<size_t> too_many_tokens = 0;
  // Outputs are not numbers.
  std::atomic<bool> give_nan = false;
  // Calls of Run() so far, the one in progress included.
  std::atomic<int64_t> runs = 0;

  // The numbers of requests in each run so far.
  std::vector<size_t> batches() const;
  // What the engine answers: value [r, c] is a hash of the ids, the types, rows[r] and c, in
  // [-4, 4].
  EncoderOutput Output(const EncoderRequest& request) const;

  const BigsConfig& config() const override { return config_; }
  int64_t max_tokens() const override;
  int64_t PaddedLength(int64_t tokens) const override;
  int64_t max_batch_tokens() const override { return options_.max_batch_tokens; }
  absl::Status Validate(const EncoderRequest& request) const override;
  std::vector<EncoderOutput> Run(std::span<const EncoderRequest* const> requests) override;

 private:
  int64_t Columns(const EncoderRequest& request) const;
  void CheckBatch(std::span<const EncoderRequest* const> requests) const;

  const FakeEncoderOptions options_;
  BigsConfig config_;
  std::thread::id thread_;    // of the first Run()
  mutable std::mutex mutex_;  // guards batches_
  std::vector<size_t> batches_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_FAKE_ENCODER_H_
