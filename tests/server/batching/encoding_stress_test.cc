// Many clients at once: no answer is another's.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

#include "server/batching/encoding_batcher.h"
#include "tests/testing/fake_encoder.h"

namespace hippodrome::encoding_stress_test {
namespace {

constexpr int kThreads = 64;
constexpr int kCallsPerThread = 100;

class EncodingStressTest : public testing::TestWithParam<int64_t> {
 protected:
  // One client; says how many answers were wrong.
  int Run(uint32_t seed) {
    std::mt19937 random(seed);
    int wrong = 0;
    for (int i = 0; i < kCallsPerThread; ++i) {
      const std::vector<EncoderRequest> requests = RandomCall(random);
      auto encoding = batcher_.Submit({requests});
      if (!encoding.ok()) return kCallsPerThread;
      if (random() % 16 == 0) continue;  // gives up
      wrong += IsAnswer(**encoding, requests) ? 0 : 1;
    }
    return wrong;
  }

  static std::vector<EncoderRequest> RandomCall(std::mt19937& random) {
    std::vector<EncoderRequest> requests(random() % 8 == 0 ? 1 + random() % 12 : 1);
    for (EncoderRequest& request : requests) {
      request.ids.resize(1 + random() % 32);
      for (int32_t& id : request.ids) id = static_cast<int32_t>(random() % 100);
      if (random() % 2 == 0) request.task = EncoderTask::kEmbedding;
    }
    return requests;
  }

  bool IsAnswer(Encoding& encoding, const std::vector<EncoderRequest>& requests) {
    auto ready = std::make_shared<std::binary_semaphore>(0);
    encoding.OnReady([ready] { ready->release(); });
    if (!ready->try_acquire_for(std::chrono::minutes(1))) return false;
    const auto outputs = encoding.Take();
    if (!outputs || !outputs->ok() || (*outputs)->size() != requests.size()) return false;
    for (size_t i = 0; i < requests.size(); ++i) {
      if ((**outputs)[i].values != engine_.Output(requests[i]).values) return false;
    }
    return true;
  }

  Metrics metrics_;
  EncoderMetrics model_{metrics_.registry(), "m"};
  FakeEncoder engine_{{.pad_to = GetParam(), .max_batch_tokens = 256}};
  EncodingBatcher batcher_{engine_, {}, model_};
};

TEST_P(EncodingStressTest, EveryClientGetsItsOwnAnswers) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] { wrong += Run(t); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Padding, EncodingStressTest, testing::Values(0, 32));

}  // namespace
}  // namespace hippodrome::encoding_stress_test
