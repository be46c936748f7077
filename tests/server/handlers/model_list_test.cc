#include "server/handlers/model_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "server/handlers/handlers.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::model_list_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ModelListTest : public testing::Test {
 protected:
  // `engine`: its engine, which lives as long as the model.
  std::unique_ptr<ServedModel> NewModel(const std::string& name, FakeEngine** engine = nullptr) {
    return NewServedModel(NewFakeModel(name, {}, engine), metrics_);
  }

  static std::vector<std::string> Names(const ModelList& list) {
    std::vector<std::string> names;
    for (const auto& model : *list.all()) names.push_back(model->info().name());
    return names;
  }

  // Its text once it is whole, or its error.
  static absl::StatusOr<std::string> Finish(Generation& generation) {
    std::string text;
    absl::Status status;
    const bool ended = WaitUntil([&] {
      const auto update = generation.Take();
      if (!update) return false;
      text += update->text;
      status = update->status;
      return update->last();
    });
    if (!ended) return Internal("it does not end");
    if (!status.ok()) return status;
    return text;
  }

  Metrics metrics_;
};

TEST_F(ModelListTest, NamesKeepTheirPlaces) {
  ModelList list({});
  EXPECT_TRUE(absl::IsNotFound(list.Find("").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(list.FindDecoder("").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(list.FindEncoder("").status()));
  for (const char* name : {"a", "b", "c", "b"}) list.Publish(NewModel(name));
  EXPECT_THAT(Names(list), ElementsAre("a", "b", "c"));
  EXPECT_EQ((*list.Find(""))->info().name(), "a");
  ASSERT_TRUE(list.Withdraw("a").ok());
  EXPECT_TRUE(absl::IsNotFound(list.Withdraw("a")));
  EXPECT_TRUE(absl::IsNotFound(list.Find("a").status()));
  EXPECT_EQ((*list.FindDecoder(""))->info().name(), "b");
  list.Arrange({"d", "c"});
  EXPECT_THAT(Names(list), ElementsAre("c", "b"));
  list.Publish(NewModel("d"));
  EXPECT_THAT(Names(list), ElementsAre("d", "c", "b"));
}

// One request, to the model "m", whose engine waits.
class HeldRequestTest : public ModelListTest {
 protected:
  HeldRequestTest() { request_.set_text("ab"); }

  void SetUp() override {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewModel("m", &engine_));
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits());
    engine_->hold_decode = true;
    auto generation = handlers_->Generate(request_, Api::kHttp);
    ASSERT_TRUE(generation.ok()) << generation.status();
    generation_ = *std::move(generation);
  }

  FakeEngine* engine_ = nullptr;
  v1::GenerateRequest request_;
  std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<Generation> generation_;
};

TEST_F(HeldRequestTest, ARequestKeepsTheModelThatItBeganWith) {
  handlers_->models().Publish(NewModel("m"));
  EXPECT_EQ(handlers_->pending(), 1);
  EXPECT_EQ(handlers_->models().leaving().size(), 1);
  EXPECT_THAT(handlers_->models().Reap(), IsEmpty());
  auto other = handlers_->Generate(request_, Api::kHttp);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(Finish(**other).ok());  // although the old model is held
  engine_->hold_decode = false;
  EXPECT_EQ(Finish(*generation_).value(), "abababababababab");
  EXPECT_THAT(handlers_->models().Reap(), IsEmpty());  // its answer may still be read
  generation_.reset();
  EXPECT_THAT(handlers_->models().Reap(), ElementsAre("m"));
  EXPECT_TRUE(handlers_->models().leaving().empty());
}

TEST_F(HeldRequestTest, RequestsAreCutWhereThereIsATimeLimit) {
  ASSERT_TRUE(handlers_->models().Withdraw("m", ModelList::Clock::now()).ok());
  EXPECT_TRUE(absl::IsNotFound(handlers_->Generate(request_, Api::kHttp).status()) ||
              absl::IsFailedPrecondition(handlers_->Generate(request_, Api::kHttp).status()));
  EXPECT_THAT(handlers_->models().Reap(), IsEmpty());
  engine_->hold_decode = false;
  const auto text = Finish(*generation_);
  EXPECT_TRUE(absl::IsUnavailable(text.status()));
  EXPECT_THAT(Message(text.status()), HasSubstr("'m' was unloaded"));
}

TEST_F(ModelListTest, ReadyNeedsAModel) {
  Handlers handlers({}, RequestLimits());
  EXPECT_TRUE(absl::IsUnavailable(handlers.Ready()));
  EXPECT_THAT(Message(handlers.Ready()), HasSubstr("no model"));
  handlers.models().Publish(NewModel("m"));
  EXPECT_TRUE(handlers.Ready().ok());
}

TEST_F(ModelListTest, WhatComesAfterTheEndIsClosed) {
  Handlers handlers({}, RequestLimits());
  handlers.Close();
  handlers.models().Publish(NewServedModel(NewFakeEncoderModel("e"), metrics_));
  v1::EmbedRequest request;
  request.add_inputs()->set_text("paris");
  EXPECT_TRUE(absl::IsUnavailable(handlers.encoding().Embed(request, Api::kHttp).status()));
}

// Under thread checking: who reads the list meets who changes it.
TEST_F(ModelListTest, ChangesUnderTraffic) {
  std::vector<std::unique_ptr<ServedModel>> models;
  models.push_back(NewModel("stays"));
  models.push_back(NewModel("m"));
  Handlers handlers(std::move(models), RequestLimits());
  std::atomic<bool> stop = false;
  std::atomic<int64_t> answers = 0;
  std::vector<std::thread> clients;
  for (const char* name : {"stays", "m"}) {
    clients.emplace_back([&, name] {
      while (!stop.load()) {
        v1::GenerateRequest request;
        request.set_model(name);
        request.set_text("ab");
        auto generation = handlers.Generate(request, Api::kHttp);
        if (absl::IsNotFound(generation.status())) continue;
        ASSERT_TRUE(generation.ok()) << generation.status();
        ASSERT_EQ(Finish(**generation).value(), "abababababababab");
        ++answers;
      }
    });
  }
  size_t destroyed = 0;
  for (int i = 0; i < 20; ++i) {
    handlers.models().Publish(NewModel("m"));
    if (i % 3 == 0) {
      ASSERT_TRUE(handlers.models().Withdraw("m").ok());
    }
    const int64_t before = answers.load();
    ASSERT_TRUE(WaitUntil([&] { return answers.load() > before; }));
    destroyed += handlers.models().Reap().size();
    EXPECT_TRUE(handlers.Ready().ok());
  }
  stop.store(true);
  for (std::thread& client : clients) client.join();
  destroyed += handlers.models().Reap().size();
  EXPECT_EQ(destroyed, 20);  // all but the last
}

}  // namespace
}  // namespace hippodrome::model_list_test
