// A GenerationBatcher over an engine that repeats its prompts.
#ifndef HIPPODROME_TESTS_TESTING_BATCHER_FIXTURE_H_
#define HIPPODROME_TESTS_TESTING_BATCHER_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/batching/generation_batcher.h"
#include "tests/testing/byte_tokenizer.h"
#include "tests/testing/fake_engine.h"
#include "tests/testing/wait_until.h"

namespace hippodrome {

inline GenerationCall Call(const std::string& prompt, int64_t max_tokens,
                           std::vector<std::string> stop = {}) {
  GenerationCall call;
  for (const char c : prompt) call.request.prompt.push_back(static_cast<unsigned char>(c));
  call.request.max_tokens = max_tokens;
  call.stop = std::move(stop);
  return call;
}

// What the fake engine says to `prompt`.
inline std::string Repeat(const std::string& prompt, size_t tokens) {
  std::string text;
  while (text.size() < tokens) text += prompt[text.size() % prompt.size()];
  return text;
}

class BatcherFixture : public testing::Test {
 protected:
  void Start(const FakeEngineOptions& engine = {}, const BatcherOptions& options = {}) {
    engine_ = std::make_unique<FakeEngine>(engine);
    batcher_ = std::make_unique<GenerationBatcher>(*engine_, tokenizer_.get(), options, model_);
  }

  std::unique_ptr<Generation> Submit(GenerationCall call) {
    auto generation = batcher_->Submit(std::move(call));
    EXPECT_TRUE(generation.ok()) << generation.status();
    return *std::move(generation);
  }

  // Everything up to the end.
  static StreamUpdate Collect(Generation& generation) {
    StreamUpdate all;
    WaitUntil([&] {
      const auto update = generation.Take();
      if (!update) return false;
      all.text += update->text;
      all.token_ids.insert(all.token_ids.end(), update->token_ids.begin(), update->token_ids.end());
      all.finish = update->finish;
      all.status = update->status;
      all.prompt_tokens = update->prompt_tokens;
      all.completion_tokens = update->completion_tokens;
      return update->last();
    });
    return all;
  }

  bool AllFree() {
    return WaitUntil([&] {
      return batcher_->pending() == 0 && engine_->used_slots == 0 && engine_->used_pages == 0;
    });
  }

  bool MetricsSay(const std::string& line) {
    return metrics_.Text().find(line + "\n") != std::string::npos;
  }

  std::unique_ptr<BpeTokenizer> tokenizer_ = NewByteTokenizer();
  Metrics metrics_;
  ModelMetrics model_{metrics_.registry(), "m"};
  std::unique_ptr<FakeEngine> engine_;
  std::unique_ptr<GenerationBatcher> batcher_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_BATCHER_FIXTURE_H_
