#include "server/batches/batch_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http_replies.h"
#include "server/metrics/metrics.h"
#include "server/status_map.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::batch_runner_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Stands in for the routes: answers a body {"inputs": N} by N, at once or by the test's leave.
class FakeRoutes {
 public:
  HttpReply Answer(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    ++asked;
    EXPECT_TRUE(request.background);
    EXPECT_EQ(request.path, "/predict");
    EXPECT_EQ(request.headers.at("content-type"), "application/json");
    if (!refusals.empty()) {
      const absl::Status refusal = refusals.back();
      refusals.pop_back();
      return Failed(refusal);
    }
    const json body = json::parse(request.body);
    if (body["inputs"] < 0) return Failed(absl::InvalidArgumentError("less than nothing"));
    HttpReply reply;
    reply.permit = request.permit;
    reply.work = std::make_unique<Work>(*this, "[" + body["inputs"].dump() + "]");
    running = std::max(running, ++now_running_);
    return reply;
  }
  void Release() {
    held.store(false);
    const std::lock_guard lock(mutex_);
    for (const auto& [work, wake] : wakes_) wake();
  }

  std::atomic<bool> held = false;  // no answer is ready
  std::atomic<int64_t> asked = 0;
  std::vector<absl::Status> refusals;  // of the next calls, the last one first
  int64_t running = 0;                 // the most at once

 private:
  class Work : public HttpWork {
   public:
    Work(FakeRoutes& routes, std::string body) : routes_(routes), body_(std::move(body)) {}
    ~Work() override {
      const std::lock_guard lock(routes_.mutex_);
      routes_.wakes_.erase(this);
      --routes_.now_running_;
    }
    void OnUpdate(std::function<void()> wake) override {
      const std::lock_guard lock(routes_.mutex_);
      if (!routes_.held.load()) wake();
      routes_.wakes_[this] = std::move(wake);
    }
    bool Advance(HttpResponse& response) override {
      if (routes_.held.load()) return false;
      response.body = body_;
      return true;
    }

   private:
    FakeRoutes& routes_;
    const std::string body_;
  };

  std::mutex mutex_;
  std::map<const HttpWork*, std::function<void()>> wakes_;
  int64_t now_running_ = 0;
};

class BatchRunnerTest : public testing::Test {
 protected:
  BatchRunnerTest() { OpenStore(); }
  ~BatchRunnerTest() override { runner_.reset(); }

  void OpenStore() {
    store_.reset();
    store_ = *BatchStore::Open({.directory = folder_.File("store")}, batch_metrics_,
                               [this] { return now_.load(); });
  }
  void Start() {
    runner_ = std::make_unique<BatchRunner>(BatchRunner::Options{
        .store = *store_,
        .metrics = batch_metrics_,
        .answer = [this](HttpRequest request) { return routes_.Answer(request); },
        .admit = [this](const std::string& key) { return Admit(key); },
        .most_calls = 8,
        .most_line_bytes = 1000});
  }
  absl::StatusOr<std::shared_ptr<CallPermit>> Admit(const std::string& key) {
    if (key == "gone") return absl::PermissionDeniedError("the key is gone");
    return nullptr;
  }
  // As after a crash, or a stop.
  void Restart() {
    runner_.reset();
    OpenStore();
    Start();
  }
  // Numbers, of which those below 0 are errors.
  static std::string Input(const std::vector<int>& numbers) {
    std::string text;
    for (size_t i = 0; i < numbers.size(); ++i) {
      text += json{{"custom_id", std::to_string(i)},
                   {"method", "POST"},
                   {"url", "/predict"},
                   {"body", {{"inputs", numbers[i]}}}}
                  .dump() +
              "\n";
    }
    return text;
  }
  static std::vector<int> Numbers(int count) {
    std::vector<int> numbers(count);
    for (int i = 0; i < count; ++i) numbers[i] = i % 7 == 3 ? -i : i;
    return numbers;
  }
  std::string Add(const std::string& input, const std::string& owner = "me") {
    Batch wanted;
    wanted.endpoint = "/predict";
    wanted.input_file = store_->AddFile(owner, "input", input)->id;
    return store_->AddBatch(owner, wanted)->id;
  }
  Batch Get(const std::string& id, const std::string& owner = "me") {
    return *store_->FindBatch(owner, id);
  }
  Batch Ended(const std::string& id, const std::string& owner = "me") {
    EXPECT_TRUE(WaitUntil([&] { return IsFinal(Get(id, owner).status); }));
    return Get(id, owner);
  }
  std::vector<json> Records(const std::string& file) {
    std::vector<json> records;
    if (file.empty()) return records;
    std::istringstream lines(FileContent(store_->FilePath(file)));
    for (std::string line; std::getline(lines, line);) records.push_back(json::parse(line));
    return records;
  }
  // All lines of Numbers(count) are in the files of the batch, each once.
  void ExpectWhole(const Batch& batch, int count) {
    std::vector<std::string> good;
    std::vector<std::string> bad;
    for (int i = 0; i < count; ++i) (i % 7 == 3 ? bad : good).push_back(std::to_string(i));
    const std::vector<json> output = Records(batch.output_file);
    const std::vector<json> errors = Records(batch.error_file);
    ASSERT_EQ(output.size(), good.size());
    ASSERT_EQ(errors.size(), bad.size());
    for (size_t i = 0; i < good.size(); ++i) {
      EXPECT_EQ(output[i]["custom_id"], good[i]);
      EXPECT_EQ(output[i]["response"]["body"].dump(), "[" + good[i] + "]");
    }
    for (size_t i = 0; i < bad.size(); ++i) {
      EXPECT_EQ(errors[i]["custom_id"], bad[i]);
      EXPECT_EQ(errors[i]["response"]["status_code"], 400);
    }
    EXPECT_EQ(batch.counts.completed, std::ssize(good));
    EXPECT_EQ(batch.counts.failed, std::ssize(bad));
    EXPECT_EQ(batch.total, count);
  }

  TemporaryDirectory folder_;
  std::atomic<int64_t> now_ = 1000;
  Metrics metrics_;
  BatchMetrics batch_metrics_{metrics_.registry(), BatchStatusNames()};
  FakeRoutes routes_;
  std::unique_ptr<BatchStore> store_;
  std::unique_ptr<BatchRunner> runner_;
};

TEST_F(BatchRunnerTest, AnswersEveryLineInItsPlace) {
  Start();
  const Batch batch = Ended(Add(Input(Numbers(300))));
  EXPECT_EQ(batch.status, BatchStatus::kCompleted);
  ExpectWhole(batch, 300);
  EXPECT_GT(batch.at(BatchStatus::kInProgress), 0);
  EXPECT_GT(batch.at(BatchStatus::kFinalizing), 0);
  EXPECT_GT(batch.at(BatchStatus::kCompleted), 0);
  EXPECT_LE(routes_.running, 8);
  EXPECT_THAT(metrics_.Text(), HasSubstr("hippodrome_batch_lines_total{result=\"failed\"} 43\n"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("hippodrome_batches{status=\"completed\"} 1\n"));
}

TEST_F(BatchRunnerTest, InputThatIsWrongFailsBeforeAnythingRuns) {
  Start();
  const Batch batch = Ended(Add(Input({1, 2}) + "{\n"));
  EXPECT_EQ(batch.status, BatchStatus::kFailed);
  ASSERT_EQ(batch.errors.size(), 1U);
  EXPECT_EQ(batch.errors[0].line, 3);
  EXPECT_EQ(batch.output_file, "");
  EXPECT_EQ(routes_.asked.load(), 0);
}

TEST_F(BatchRunnerTest, WhatIsRefusedForWantOfRoomIsAskedAgain) {
  for (int i = 0; i < 5; ++i) {
    routes_.refusals.push_back(absl::ResourceExhaustedError("the queue is full"));
  }
  routes_.refusals.push_back(absl::UnavailableError("the model is being loaded"));
  Start();
  const Batch batch = Ended(Add(Input(Numbers(30))));
  ExpectWhole(batch, 30);
  EXPECT_GT(routes_.asked.load(), 30);
}

// Where the model has failed, it then says so.
TEST_F(BatchRunnerTest, AnErrorOfTheServerIsNoLinesOwnUntilTheSecondTime) {
  routes_.refusals = {absl::UnavailableError("the model has failed"),
                      absl::InternalError("the model fails")};
  Start();
  ExpectWhole(Ended(Add(Input(Numbers(1)))), 1);
  {
    runner_.reset();
    routes_.refusals = {absl::InternalError("again"), absl::InternalError("no such luck")};
    Start();
  }
  const Batch batch = Ended(Add(Input({5})));
  ASSERT_EQ(Records(batch.error_file).size(), 1U);
  EXPECT_EQ(Records(batch.error_file)[0]["response"]["status_code"], 500);
}

TEST_F(BatchRunnerTest, ACancelledBatchKeepsWhatItHas) {
  routes_.held.store(true);
  Start();
  const std::string id = Add(Input(Numbers(50)));
  ASSERT_TRUE(WaitUntil([&] { return routes_.asked.load() >= 8; }));
  ASSERT_TRUE(store_->Cancel("me", id).ok());
  const Batch batch = Ended(id);
  EXPECT_EQ(batch.status, BatchStatus::kCancelled);
  EXPECT_EQ(batch.counts.completed + batch.counts.failed, 50);
  const std::vector<json> errors = Records(batch.error_file);
  ASSERT_EQ(errors.size(), 50U);
  EXPECT_TRUE(errors[0]["response"].is_null());
  EXPECT_EQ(errors[0]["error"]["code"], "batch_cancelled");
  EXPECT_EQ(errors[49]["custom_id"], "49");
}

TEST_F(BatchRunnerTest, WhatHasExpiredEndsAlsoAcrossARestart) {
  routes_.held.store(true);
  Start();
  const std::string id = Add(Input(Numbers(20)));
  ASSERT_TRUE(WaitUntil([&] { return routes_.asked.load() >= 8; }));
  now_ += kBatchSeconds;
  Restart();
  const Batch batch = Ended(id);
  EXPECT_EQ(batch.status, BatchStatus::kExpired);
  EXPECT_EQ(batch.at(BatchStatus::kExpired), now_.load());
  const std::vector<json> errors = Records(batch.error_file);
  ASSERT_EQ(errors.size(), 20U);
  EXPECT_EQ(errors[0]["error"]["code"], "batch_expired");
}

TEST_F(BatchRunnerTest, AStoppedBatchGoesOnWhereItWas) {
  Start();
  const std::string whole = Ended(Add(Input(Numbers(200)))).output_file;
  const std::string id = Add(Input(Numbers(200)));
  for (int i = 0; i < 5; ++i) Restart();
  const Batch batch = Ended(id);
  ExpectWhole(batch, 200);
  EXPECT_EQ(Records(whole).size(), Records(batch.output_file).size());
}

TEST_F(BatchRunnerTest, StoppingDoesNotWaitForAnswers) {
  routes_.held.store(true);
  Start();
  const std::string id = Add(Input(Numbers(20)));
  ASSERT_TRUE(WaitUntil([&] { return routes_.asked.load() >= 8; }));
  runner_->Stop();
  EXPECT_EQ(Get(id).status, BatchStatus::kInProgress);
  routes_.Release();
  Restart();
  ExpectWhole(Ended(id), 20);
}

TEST_F(BatchRunnerTest, OwnersDoNotWaitForEachOther) {
  routes_.held.store(true);
  Start();
  const std::string first = Add(Input(Numbers(20)));
  const std::string second = Add(Input(Numbers(20)));
  const std::string other = Add(Input(Numbers(20)), "you");
  ASSERT_TRUE(WaitUntil([&] { return routes_.asked.load() >= 16; }));
  EXPECT_EQ(Get(second).status, BatchStatus::kInProgress);  // its input is checked
  routes_.Release();
  ExpectWhole(Ended(first), 20);
  ExpectWhole(Ended(second), 20);
  ExpectWhole(Ended(other, "you"), 20);
}

TEST_F(BatchRunnerTest, ABatchWhoseKeyIsGoneFails) {
  Start();
  const Batch batch = Ended(Add(Input(Numbers(5)), "gone"), "gone");
  EXPECT_EQ(batch.status, BatchStatus::kFailed);
  ASSERT_EQ(batch.errors.size(), 1U);
  EXPECT_EQ(batch.errors[0].code, "key_gone");
  EXPECT_EQ(batch.errors[0].message, "the key is gone");
}

TEST_F(BatchRunnerTest, AnInputThatIsLostFailsItsBatch) {
  const std::string id = Add(Input(Numbers(5)));
  std::filesystem::remove(store_->FilePath(Get(id).input_file));
  Start();
  EXPECT_EQ(Ended(id).errors.at(0).code, "input_file_lost");
}

// A folder stands where the answers should go.
TEST_F(BatchRunnerTest, WhatCannotBeWrittenMakesABatchPause) {
  const std::string id = Add(Input(Numbers(5)));
  std::filesystem::create_directory(store_->OutputPath(id));
  Start();
  ASSERT_TRUE(WaitUntil([&] { return Get(id).status == BatchStatus::kInProgress; }));
  std::filesystem::remove(store_->OutputPath(id));
  ExpectWhole(Ended(id), 5);
}

}  // namespace
}  // namespace hippodrome::batch_runner_test
