#include "tests/testing/fake_encoder.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>

#include "engine/base/status.h"
#include "kernels/device_error.h"

namespace hippodrome {
namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "FakeEncoder: %s\n", what);
  std::abort();
}

// One round of splitmix64.
uint64_t Mix(uint64_t hash, uint64_t value) {
  uint64_t z = hash * 31 + value + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

float Unit(uint64_t hash) { return static_cast<float>(hash >> 40) / static_cast<float>(1 << 24); }

}  // namespace

FakeEncoder::FakeEncoder(const FakeEncoderOptions& options) : options_(options) {
  config_.head = options.head;
  config_.labels = options.labels;
  config_.vocab_size = options.vocab_size;
  config_.hidden_size = options.hidden_size;
  config_.max_position_embeddings = options.max_positions;
  config_.pad_to = options.pad_to;
}

std::vector<size_t> FakeEncoder::batches() const {
  std::lock_guard lock(mutex_);
  return batches_;
}

int64_t FakeEncoder::max_tokens() const {
  return options_.pad_to > 0 ? options_.pad_to : options_.max_positions;
}

int64_t FakeEncoder::PaddedLength(int64_t tokens) const {
  return options_.pad_to > 0 ? options_.pad_to : tokens;
}

absl::Status FakeEncoder::Validate(const EncoderRequest& request) const {
  const auto tokens = static_cast<int64_t>(request.ids.size());
  if (tokens == 0) return InvalidArgument("there are no tokens");
  if (tokens > max_tokens()) {
    return absl::OutOfRangeError("the input has " + std::to_string(tokens) +
                                 " tokens, but the model takes at most " +
                                 std::to_string(max_tokens()));
  }
  for (const int32_t id : request.ids) {
    if (id < 0 || id >= options_.vocab_size) return InvalidArgument("there is no such token");
  }
  if (!request.types.empty() && request.types.size() != request.ids.size()) {
    return InvalidArgument("there is not one type for each token");
  }
  return absl::OkStatus();
}

int64_t FakeEncoder::Columns(const EncoderRequest& request) const {
  if (request.task != EncoderTask::kHead) return options_.hidden_size;
  switch (options_.head) {
    case EncoderHead::kMaskedLm:
      return options_.vocab_size;
    case EncoderHead::kQuestionAnswering:
      return 2;
    case EncoderHead::kMultipleChoice:
      return 1;
    default:
      return static_cast<int64_t>(options_.labels.size());
  }
}

EncoderOutput FakeEncoder::Output(const EncoderRequest& request) const {
  uint64_t hash = request.task != EncoderTask::kHead ? 1 : 0;
  for (const int32_t id : request.ids) hash = Mix(hash, static_cast<uint64_t>(id));
  for (const int32_t type : request.types) hash = Mix(hash, static_cast<uint64_t>(type) + 1000);
  std::vector<int32_t> rows = request.rows;
  if (rows.empty()) rows.push_back(0);
  EncoderOutput output;
  output.rows = static_cast<int64_t>(rows.size());
  output.cols = Columns(request);
  for (const int32_t row : rows) {
    for (int64_t c = 0; c < output.cols; ++c) {
      const uint64_t value = Mix(Mix(hash, static_cast<uint64_t>(row)), static_cast<uint64_t>(c));
      output.values.push_back(8 * Unit(value) - 4);
    }
  }
  return output;
}

void FakeEncoder::CheckBatch(std::span<const EncoderRequest* const> requests) const {
  Require(!requests.empty(), "an empty batch");
  const auto first = static_cast<int64_t>(requests[0]->ids.size());
  const int64_t padded = PaddedLength(first);
  for (const EncoderRequest* request : requests) {
    Require(Validate(*request).ok(), "a request that is not valid");
    Require(PaddedLength(static_cast<int64_t>(request->ids.size())) == padded,
            "a batch of several lengths");
  }
  const int64_t tokens = padded * static_cast<int64_t>(requests.size());
  Require(requests.size() == 1 || tokens <= options_.max_batch_tokens, "a batch that is too large");
}

std::vector<EncoderOutput> FakeEncoder::Run(std::span<const EncoderRequest* const> requests) {
  const std::thread::id here = std::this_thread::get_id();
  if (runs++ == 0) thread_ = here;
  Require(thread_ == here, "called from two threads");
  CheckBatch(requests);
  {
    std::lock_guard lock(mutex_);
    batches_.push_back(requests.size());
  }
  while (hold && !break_device) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (break_device) throw DeviceError("cuda: long_conv: broken by a test");
  for (const EncoderRequest* request : requests) {
    if (request->ids.size() == too_many_tokens) throw std::bad_alloc();
  }
  std::vector<EncoderOutput> outputs;
  outputs.reserve(requests.size());
  for (const EncoderRequest* request : requests) outputs.push_back(Output(*request));
  if (give_nan) outputs[0].values[0] = std::numeric_limits<float>::quiet_NaN();
  return outputs;
}

}  // namespace hippodrome
