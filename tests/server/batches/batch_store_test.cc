#include "server/batches/batch_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/field_error.h"
#include "server/metrics/metrics.h"
#include "server/status_map.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::batch_store_test {
namespace {

using testing::HasSubstr;

class BatchStoreTest : public testing::Test {
 protected:
  BatchStoreTest() { Open(); }

  void Open() {
    store_.reset();
    store_ = *BatchStore::Open(options_, batch_metrics_, [this] { return now_; });
  }
  StoredFile Add(const std::string& owner, const std::string& content = "{}\n") {
    return *store_->AddFile(owner, "input.jsonl", content);
  }
  absl::StatusOr<Batch> AddBatch(const std::string& owner, const std::string& file) {
    Batch wanted;
    wanted.endpoint = "/predict";
    wanted.input_file = file;
    wanted.metadata = {{"a", "b"}};
    return store_->AddBatch(owner, wanted);
  }
  // Comes to its end with the answers that are given.
  void Complete(const std::string& id, BatchStatus outcome = BatchStatus::kCompleted) {
    Batch published;
    ASSERT_TRUE(store_
                    ->Change(id,
                             [&](Batch& batch) {
                               batch.outcome = outcome;
                               published = batch;
                             })
                    .ok());
    ASSERT_TRUE(store_->Publish(published).ok());
    ASSERT_TRUE(store_
                    ->Change(id,
                             [&](Batch& batch) {
                               batch.status = outcome;
                               batch.output_file = published.output_file;
                               batch.error_file = published.error_file;
                             })
                    .ok());
  }
  std::string Path(const std::string& name) const { return options_.directory + "/" + name; }

  TemporaryDirectory folder_;
  BatchStoreOptions options_{.directory = folder_.File("batches"), .directory_bytes = 1 << 20};
  int64_t now_ = 1000;
  Metrics metrics_;
  BatchMetrics batch_metrics_{metrics_.registry(), BatchStatusNames()};
  std::unique_ptr<BatchStore> store_;
};

TEST_F(BatchStoreTest, FilesAndBatchesOutliveTheServer) {
  const StoredFile file = Add("me", "line\n");
  const Batch batch = *AddBatch("me", file.id);
  const std::string json = DumpObject(BatchJson(batch));
  now_ += 5;
  Open();
  EXPECT_EQ(DumpObject(FileJson(*store_->FindFile("me", file.id))), DumpObject(FileJson(file)));
  EXPECT_EQ(FileContent(store_->FilePath(file.id)), "line\n");
  EXPECT_EQ(DumpObject(BatchJson(*store_->FindBatch("me", batch.id))), json);
  EXPECT_EQ(batch.expires_at, 1000 + 24 * 60 * 60);
  EXPECT_EQ(store_->Unfinished().size(), 1U);
  EXPECT_GT(Add("me").number, batch.number);
}

TEST_F(BatchStoreTest, OthersFindNothing) {
  const StoredFile file = Add("me");
  const Batch batch = *AddBatch("me", file.id);
  EXPECT_TRUE(absl::IsNotFound(store_->FindFile("you", file.id).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->RemoveFile("you", file.id)));
  EXPECT_TRUE(absl::IsNotFound(store_->FindBatch("you", batch.id).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Cancel("you", batch.id).status()));
  EXPECT_EQ(Field(AddBatch("you", file.id).status()), "input_file_id");
  EXPECT_TRUE(store_->Files("you").empty());
  EXPECT_TRUE(store_->Batches("you").empty());
}

TEST_F(BatchStoreTest, AFileGoesWhenNoBatchReadsIt) {
  const StoredFile file = Add("me");
  const Batch batch = *AddBatch("me", file.id);
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->RemoveFile("me", file.id)));
  Complete(batch.id);
  ASSERT_TRUE(store_->RemoveFile("me", file.id).ok());
  EXPECT_TRUE(std::filesystem::is_empty(Path("files")));
  Open();
  EXPECT_TRUE(store_->Files("me").empty());
}

TEST_F(BatchStoreTest, AnswersBecomeFilesWhereverTheServerEnds) {
  const Batch batch = *AddBatch("me", Add("me").id);
  folder_.Write("batches/batches/" + batch.id + ".output.jsonl", "answers\n");
  folder_.Write("batches/batches/" + batch.id + ".errors.jsonl", "");
  ASSERT_TRUE(store_->Change(batch.id, [](Batch& b) { b.outcome = BatchStatus::kCompleted; }).ok());
  Batch first = batch;
  ASSERT_TRUE(store_->Publish(first).ok());
  Open();
  const Batch again = store_->Unfinished().front();
  EXPECT_EQ(again.outcome, BatchStatus::kCompleted);
  Complete(batch.id);
  const Batch completed = *store_->FindBatch("me", batch.id);
  EXPECT_EQ(completed.output_file, first.output_file);
  EXPECT_EQ(completed.error_file, "");
  EXPECT_EQ(FileContent(store_->FilePath(completed.output_file)), "answers\n");
  EXPECT_EQ(store_->FindFile("me", completed.output_file)->purpose, "batch_output");
  EXPECT_EQ(Field(AddBatch("me", completed.output_file).status()), "input_file_id");
}

TEST_F(BatchStoreTest, OnlyWhatRunsCanBeCancelled) {
  const Batch batch = *AddBatch("me", Add("me").id);
  int wakes = 0;
  store_->OnChange([&] { ++wakes; });
  EXPECT_EQ(store_->Cancel("me", batch.id)->status, BatchStatus::kCancelling);
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(store_->Cancel("me", batch.id)->status, BatchStatus::kCancelling);
  Complete(batch.id, BatchStatus::kCancelled);
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Cancel("me", batch.id).status()));
  const Batch decided = *AddBatch("me", Add("me").id);
  ASSERT_TRUE(
      store_->Change(decided.id, [](Batch& b) { b.outcome = BatchStatus::kCompleted; }).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Cancel("me", decided.id).status()));
}

TEST_F(BatchStoreTest, WhatIsDamagedOrOfOthersIsLeftAlone) {
  const StoredFile file = Add("me");
  const StoredFile cut = Add("me", "long line\n");
  const Batch batch = *AddBatch("me", file.id);
  const std::string digits(32, '0');
  const std::vector<std::string> left = {
      folder_.Write("batches/files/README", "x"),
      folder_.Write("batches/files/file-" + digits, "x"),
      folder_.Write("batches/files/file-" + std::string(32, '1') + ".json", "{}"),
      folder_.Write("batches/files/" + cut.id, "short"),
      folder_.Write("batches/batches/batch_" + digits + ".json", R"({"batch": {"id": 5}})"),
      folder_.Write("batches/batches/batch_" + std::string(32, '1') + ".json",
                    FileContent(Path("batches/" + batch.id + ".json"))),
      folder_.Write("batches/batches/batch_" + std::string(32, '2') + ".json", "[[[")};
  folder_.Write("batches/files/file-" + std::string(32, '1'), "x");
  const std::string part = folder_.Write("batches/files/" + file.id + ".json.tmp", "{");
  const std::string lost = Path("files/file-" + std::string(32, '3') + ".json");
  std::filesystem::copy_file(Path("files/" + file.id + ".json"), lost);
  Open();
  EXPECT_EQ(store_->Files("me").size(), 1U);
  EXPECT_EQ(store_->Batches("me").size(), 1U);
  for (const std::string& path : left) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_FALSE(std::filesystem::exists(part));
  EXPECT_FALSE(std::filesystem::exists(lost));
}

TEST_F(BatchStoreTest, TheDirectoryIsForItsUserAlone) {
  for (const char* name : {"", "files", "batches"}) {
    struct stat info = {};
    ASSERT_EQ(stat(Path(name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U) << name;
  }
}

TEST_F(BatchStoreTest, ADirectoryHasOneServer) {
  const auto other = BatchStore::Open(options_, batch_metrics_);
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status()));
  EXPECT_THAT(other.status().ToString(), HasSubstr("another server"));
}

TEST_F(BatchStoreTest, ADirectoryHasABound) {
  const StoredFile file = Add("me", std::string(1000000, 'x'));
  const auto full = store_->AddFile("me", "more", std::string(100000, 'x'));
  EXPECT_EQ(HttpStatus(full.status()), 507);
  EXPECT_FALSE(store_->Grow(100000, false).ok());
  EXPECT_TRUE(store_->Grow(100000, true).ok());
  EXPECT_TRUE(store_->Grow(-100000, true).ok());
  ASSERT_TRUE(store_->RemoveFile("me", file.id).ok());
  EXPECT_TRUE(store_->AddFile("me", "more", std::string(100000, 'x')).ok());
}

TEST_F(BatchStoreTest, BatchesOfOneOwnerThatHaveNotEndedAreBounded) {
  options_.directory_bytes = int64_t{1} << 30;
  Open();
  const StoredFile file = Add("me");
  for (int64_t i = 0; i < kMostUnfinishedBatches; ++i) ASSERT_TRUE(AddBatch("me", file.id).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(AddBatch("me", file.id).status()));
  EXPECT_TRUE(AddBatch("you", Add("you").id).ok());
}

TEST_F(BatchStoreTest, ADirectoryThatCannotBeMadeIsNamed) {
  const std::string path = folder_.Write("file", "");
  const auto store = BatchStore::Open({.directory = path + "/below"}, batch_metrics_);
  EXPECT_THAT(store.status().ToString(), HasSubstr("file/below"));
}

}  // namespace
}  // namespace hippodrome::batch_store_test
