#include "server/handlers/model_repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "engine/model_directory.h"
#include "server/handlers/handlers.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::model_repository_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Reads nothing: a directory's name says what becomes of it.
class Loader {
 public:
  absl::StatusOr<ModelParts> operator()(const ModelSource& source,
                                        const ModelRepository::Progress& progress) {
    ++begun;
    while (hold.load()) {
      progress(0, 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    progress(1, 1);
    if (source.directory == "broken") return InvalidArgument("broken/config.json: no object");
    if (source.directory == "large") throw std::bad_alloc();
    if (source.directory == "device") throw std::runtime_error("the device has gone");
    ModelParts parts = NewFakeModel(source.name);
    parts.info.set_weights(source.directory);  // so that one tells it from another
    parts.origin = {source.directory, FingerprintModel(source.directory)};
    return parts;
  }

  std::atomic<bool> hold = false;
  std::atomic<int64_t> begun = 0;
};

class ModelRepositoryTest : public testing::Test {
 protected:
  ~ModelRepositoryTest() override { loader_.hold = false; }

  ModelRepository::Functions Functions() {
    return {
        .read = [this](const auto& source,
                       const auto& progress) { return loader_(source, progress); },
        .serve = [this](ModelParts parts) { return NewServedModel(std::move(parts), metrics_); },
        .report =
            [this](const std::string& line, bool failed) {
              std::lock_guard lock(mutex_);
              if (failed) failed_.push_back(line);
            }};
  }

  // What becomes of a load that has begun.
  struct Outcome {
    std::mutex mutex;
    std::optional<absl::Status> status;
  };

  std::shared_ptr<Outcome> Begin(const std::string& name, const std::string& directory) {
    auto outcome = std::make_shared<Outcome>();
    repository_.Load({name, directory}, std::nullopt, [outcome](const absl::Status& status) {
      std::lock_guard lock(outcome->mutex);
      EXPECT_FALSE(outcome->status) << "it ended twice";
      outcome->status = status;
    });
    return outcome;
  }

  static absl::Status End(const std::shared_ptr<Outcome>& outcome) {
    EXPECT_TRUE(WaitUntil([&] {
      std::lock_guard lock(outcome->mutex);
      return outcome->status.has_value();
    }));
    std::lock_guard lock(outcome->mutex);
    return outcome->status.value_or(Internal("it does not end"));
  }

  absl::Status Load(const std::string& name, const std::string& directory) {
    return End(Begin(name, directory));
  }

  ModelEntry Entry(const std::string& name) {
    for (ModelEntry& entry : repository_.Index()) {
      if (entry.name == name) return entry;
    }
    return {.name = name, .reason = "it is not in the index"};
  }

  // Where the model came from that is served, or "".
  std::string Served(const std::string& name) {
    const auto model = handlers_.GetModel(name);
    return model.ok() ? model->weights() : "";
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& model : *handlers_.models().all()) names.push_back(model->info().name());
    return names;
  }

  bool Gone() {
    return WaitUntil([this] { return handlers_.models().leaving().empty(); });
  }

  // The change that the list makes is made, and its loads have ended.
  void Match(const std::vector<ModelSource>& sources, int64_t loads) {
    const int64_t begun = loader_.begun;
    const auto change = repository_.Match(sources);
    ASSERT_TRUE(change.ok()) << change.status();
    ASSERT_EQ(*change != nullptr, true);
    (*change)();
    ASSERT_TRUE(WaitUntil([&] { return loader_.begun == begun + loads; }));
    ASSERT_TRUE(WaitUntil([&] {
      for (const ModelEntry& entry : repository_.Index()) {
        if (entry.state == ModelState::kLoading) return false;
      }
      std::lock_guard lock(mutex_);
      return true;
    }));
    EXPECT_TRUE(Load("barrier", "x").ok());  // loads end in order
    EXPECT_TRUE(repository_.Unload("barrier", std::nullopt).ok());
  }

  Loader loader_;
  Metrics metrics_;
  std::mutex mutex_;
  std::vector<std::string> failed_;  // what was reported; guarded by mutex_
  Handlers handlers_{{}, RequestLimits()};
  ModelRepository repository_{handlers_.models(), metrics_, Functions()};
};

TEST_F(ModelRepositoryTest, LoadsReplacesAndUnloads) {
  ASSERT_TRUE(Load("m", "one").ok());
  ASSERT_TRUE(Load("n", "two").ok());
  EXPECT_THAT(Names(), ElementsAre("m", "n"));
  EXPECT_EQ(Served("m"), "one");
  ASSERT_TRUE(Load("m", "three").ok());
  EXPECT_EQ(Served("m"), "three");
  EXPECT_THAT(Names(), ElementsAre("m", "n"));
  ASSERT_TRUE(repository_.Unload("m", std::nullopt).ok());
  EXPECT_EQ(Served("m"), "");
  EXPECT_TRUE(absl::IsNotFound(repository_.Unload("m", std::nullopt)));
  EXPECT_TRUE(Gone());
  EXPECT_EQ(Entry("m").state, ModelState::kUnavailable);
  EXPECT_EQ(Entry("m").reason, "unloaded");
  EXPECT_EQ(Entry("n").state, ModelState::kReady);
  ASSERT_TRUE(Load("m", "").ok());  // from where it was
  EXPECT_EQ(Served("m"), "three");
  EXPECT_EQ(Entry("m").reason, "");
}

TEST_F(ModelRepositoryTest, ALoadThatFailsChangesNothing) {
  ASSERT_TRUE(Load("m", "one").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Load("m", "broken")));
  EXPECT_TRUE(absl::IsResourceExhausted(Load("m", "large")));
  EXPECT_TRUE(absl::IsInternal(Load("m", "device")));
  EXPECT_EQ(Served("m"), "one");
  EXPECT_EQ(Entry("m").state, ModelState::kReady);
  EXPECT_THAT(Entry("m").reason, HasSubstr("the device has gone"));
  ASSERT_TRUE(Load("m", "").ok());
  EXPECT_EQ(Served("m"), "one");
  EXPECT_TRUE(absl::IsInvalidArgument(Load("new", "broken")));
  EXPECT_EQ(Entry("new").state, ModelState::kUnavailable);
  EXPECT_THAT(Entry("new").reason, HasSubstr("config.json"));
  EXPECT_TRUE(absl::IsInvalidArgument(Load("never", "")));
  std::lock_guard lock(mutex_);
  EXPECT_THAT(failed_, ElementsAre(HasSubstr("'m'"), HasSubstr("'m'"), HasSubstr("'m'"),
                                   HasSubstr("'new' is not loaded: broken/config.json")));
}

TEST_F(ModelRepositoryTest, NamesAreChecked) {
  for (const std::string& name :
       {std::string(), std::string("a/b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("\xff"), std::string(129, 'a'), std::string("a\x7f")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Load(name, "one"))) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(repository_.Unload(name, std::nullopt))) << name;
  }
  EXPECT_TRUE(Load("größe 1.5_b-128", "one").ok());
  EXPECT_EQ(repository_.Index().size(), 1);
}

TEST_F(ModelRepositoryTest, LoadsOfOneNameEndInOrder) {
  loader_.hold = true;
  const auto first = Begin("m", "one");
  const auto second = Begin("m", "two");
  EXPECT_EQ(Entry("m").state, ModelState::kLoading);
  EXPECT_TRUE(absl::IsUnavailable(handlers_.Ready()));
  loader_.hold = false;
  EXPECT_TRUE(End(first).ok());
  EXPECT_TRUE(End(second).ok());
  EXPECT_EQ(Served("m"), "two");
  EXPECT_TRUE(Gone());
}

TEST_F(ModelRepositoryTest, UnloadingGivesUpWhatLoads) {
  ASSERT_TRUE(Load("other", "one").ok());
  loader_.hold = true;
  const auto running = Begin("m", "one");
  const auto waiting = Begin("m", "two");
  ASSERT_TRUE(WaitUntil([this] { return loader_.begun == 2; }));
  ASSERT_TRUE(repository_.Unload("m", std::nullopt).ok());
  EXPECT_TRUE(absl::IsAborted(End(running)));  // although the loader is held
  EXPECT_TRUE(absl::IsAborted(End(waiting)));
  EXPECT_EQ(Served("m"), "");
  EXPECT_EQ(Entry("m").state, ModelState::kUnavailable);
  loader_.hold = false;
  EXPECT_TRUE(Load("m", "three").ok());
  EXPECT_EQ(Served("m"), "three");
}

TEST_F(ModelRepositoryTest, StoppingGivesUpWhatLoads) {
  loader_.hold = true;
  const auto running = Begin("m", "one");
  const auto waiting = Begin("n", "one");
  ASSERT_TRUE(WaitUntil([this] { return loader_.begun == 1; }));
  repository_.Stop();
  EXPECT_TRUE(absl::IsUnavailable(End(running)));
  EXPECT_TRUE(absl::IsUnavailable(End(waiting)));
  EXPECT_TRUE(absl::IsUnavailable(Load("m", "one")));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(ModelRepositoryTest, RequestsGoOnInTheModelThatWasReplaced) {
  ASSERT_TRUE(Load("m", "one").ok());
  v1::GenerateRequest request;
  request.set_text("ab");
  auto generation = handlers_.Generate(request, Api::kHttp);
  ASSERT_TRUE(generation.ok()) << generation.status();
  ASSERT_TRUE(Load("m", "two").ok());
  ASSERT_TRUE(repository_.Unload("m", std::nullopt).ok());
  EXPECT_EQ(Entry("m").state, ModelState::kUnloading);
  std::string text;
  EXPECT_TRUE(WaitUntil([&] {
    const auto update = (*generation)->Take();
    if (update) text += update->text;
    return update && update->last();
  }));
  EXPECT_EQ(text, "abababababababab");
  generation->reset();
  EXPECT_TRUE(Gone());
  EXPECT_EQ(Entry("m").state, ModelState::kUnavailable);
}

TEST_F(ModelRepositoryTest, RoomIsBounded) {
  loader_.hold = true;
  std::vector<std::shared_ptr<Outcome>> loads = {Begin("m", "one")};
  ASSERT_TRUE(WaitUntil([this] { return loader_.begun == 1; }));
  for (size_t i = 0; i < ModelRepository::kMostLoads; ++i) loads.push_back(Begin("m", "one"));
  EXPECT_TRUE(absl::IsResourceExhausted(Load("m", "one")));
  loader_.hold = false;
  for (const auto& load : loads) EXPECT_TRUE(End(load).ok());
  for (size_t i = 1; i < ModelRepository::kMostNames; ++i) {
    ASSERT_TRUE(absl::IsInvalidArgument(Load("n" + std::to_string(i), "broken")));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Load("another", "one")));
  EXPECT_TRUE(Load("m", "two").ok());
}

TEST_F(ModelRepositoryTest, AListIsMatched) {
  Match({{"a", "one"}, {"b", "two"}}, 2);
  EXPECT_THAT(Names(), ElementsAre("a", "b"));
  ASSERT_TRUE(repository_.Match({{"a", "one"}, {"b", "two"}}).ok());
  EXPECT_EQ(*repository_.Match({{"a", "one"}, {"b", "two"}}), nullptr);
  Match({{"c", "three"}, {"b", "four"}}, 2);
  EXPECT_THAT(Names(), ElementsAre("c", "b"));
  EXPECT_EQ(Served("b"), "four");
  EXPECT_TRUE(absl::IsInvalidArgument(repository_.Match({{"x/y", "one"}}).status()));
}

TEST_F(ModelRepositoryTest, AListLeavesAloneWhatWasChangedApartFromIt) {
  Match({{"a", "one"}, {"b", "two"}}, 2);
  ASSERT_TRUE(Load("mine", "three").ok());
  ASSERT_TRUE(Load("a", "four").ok());
  ASSERT_TRUE(repository_.Unload("b", std::nullopt).ok());
  EXPECT_EQ(*repository_.Match({{"a", "one"}, {"b", "two"}}), nullptr);
  Match({{"a", "one"}, {"b", "two"}, {"c", "five"}}, 1);
  EXPECT_THAT(Names(), ElementsAre("a", "c", "mine"));
  EXPECT_EQ(Served("a"), "four");
}

TEST_F(ModelRepositoryTest, AListLoadsAgainWhatHasChangedOrFailed) {
  const TemporaryDirectory directory;
  directory.Write("config.json", "1");
  const std::vector<ModelSource> sources = {{"a", directory.path()}, {"b", "broken"}};
  Match(sources, 2);
  EXPECT_THAT(Names(), ElementsAre("a"));
  Match(sources, 1);  // b, which failed
  ASSERT_TRUE(Load("b", "one").ok());
  EXPECT_EQ(*repository_.Match(sources), nullptr);
  directory.Write("config.json", "22");
  Match(sources, 1);
  EXPECT_EQ(*repository_.Match(sources), nullptr);
}

TEST_F(ModelRepositoryTest, MetricsFollow) {
  ASSERT_TRUE(Load("m", "one").ok());
  v1::GenerateRequest request;
  request.set_text("ab");
  request.set_max_tokens(3);
  for (const char* directory : {"two", "three"}) {
    auto generation = handlers_.Generate(request, Api::kHttp);
    ASSERT_TRUE(generation.ok()) << generation.status();
    EXPECT_TRUE(WaitUntil([&] {
      const auto update = (*generation)->Take();
      return update && update->last();
    }));
    ASSERT_TRUE(Load("m", directory).ok());
  }
  const auto says = [this](const std::string& text) {
    return metrics_.Text().find(text) != std::string::npos;
  };
  EXPECT_TRUE(
      WaitUntil([&] { return says("hippodrome_state_slots{model=\"m\",state=\"free\"} 4\n"); }));
  EXPECT_TRUE(says("hippodrome_generated_tokens_total{model=\"m\"} 6\n"));
  EXPECT_TRUE(says("dtype=\"three\""));
  EXPECT_FALSE(says("dtype=\"one\""));
  ASSERT_TRUE(repository_.Unload("m", std::nullopt).ok());
  EXPECT_FALSE(says("dtype=\"three\""));
  EXPECT_TRUE(
      WaitUntil([&] { return says("hippodrome_state_slots{model=\"m\",state=\"free\"} 0\n"); }));
  EXPECT_TRUE(says("hippodrome_generated_tokens_total{model=\"m\"} 6\n"));
}

// Under thread checking.
TEST_F(ModelRepositoryTest, ManyCommandsAtOnce) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> operators;
  for (const char* directory : {"one", "two"}) {
    operators.emplace_back([&, directory] {
      for (int i = 0; i < 10; ++i) {
        const absl::Status status = Load("m", directory);
        EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
        if (i % 3 == 0) repository_.Unload("m", std::nullopt).IgnoreError();
      }
    });
  }
  std::thread client([&] {
    while (!stop.load()) {
      v1::GenerateRequest request;
      request.set_model("m");
      request.set_text("ab");
      auto generation = handlers_.Generate(request, Api::kHttp);
      if (absl::IsNotFound(generation.status())) continue;
      ASSERT_TRUE(generation.ok()) << generation.status();
      absl::Status end;
      ASSERT_TRUE(WaitUntil([&] {
        const auto update = (*generation)->Take();
        if (update) end = update->status;
        return update && update->last();
      }));
      EXPECT_TRUE(end.ok()) << end;
      repository_.Index();
      metrics_.Text();
    }
  });
  for (std::thread& thread : operators) thread.join();
  stop.store(true);
  client.join();
  repository_.Unload("m", std::nullopt).IgnoreError();
  EXPECT_TRUE(Gone());
}

}  // namespace
}  // namespace hippodrome::model_repository_test
