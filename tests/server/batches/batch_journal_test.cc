#include "server/batches/batch_journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/temporary_directory.h"

namespace hippodrome::batch_journal_test {
namespace {

using nlohmann::json;

constexpr char kBatch[] = "batch_00";
constexpr int kLines = 7;

class BatchJournalTest : public testing::Test {
 protected:
  std::unique_ptr<BatchJournal> Open() {
    return *BatchJournal::Open(kBatch, folder_.File("output"), folder_.File("errors"));
  }
  // Lines 3, 4 and 6 are errors, the last of these of a line that was not reached.
  static LineResult Result(int64_t line) {
    if (line == 6) return {0, R"({"code":"batch_expired","message":"m"})"};
    if (line == 3 || line == 4) return {400, R"({"error":"usage"})"};
    return {200, R"({"text":"\"usage\":{","usage":{"prompt_tokens":)" + std::to_string(line) +
                     R"(,"completion_tokens":2}})"};
  }
  // What is there, completed.
  void WriteRest() {
    const auto journal = Open();
    for (int64_t line = journal->lines() + 1; line <= kLines; ++line) {
      const LineResult result = Result(line);
      ASSERT_TRUE(
          journal->Append(journal->Record("id " + std::to_string(line), result), result).ok());
    }
    ASSERT_TRUE(journal->Sync().ok());
    EXPECT_EQ(journal->counts().completed, 4);
    EXPECT_EQ(journal->counts().failed, 3);
    EXPECT_EQ(journal->counts().tokens.prompt, 1 + 2 + 5 + 7);
    EXPECT_EQ(journal->counts().tokens.generated, 8);
  }

  TemporaryDirectory folder_;
};

TEST_F(BatchJournalTest, RecordsAreOpenAis) {
  WriteRest();
  const std::string output = FileContent(folder_.File("output"));
  const json first = json::parse(output.substr(0, output.find('\n')));
  EXPECT_EQ(first["id"], "batch_req_00_1");
  EXPECT_EQ(first["custom_id"], "id 1");
  EXPECT_EQ(first["response"]["status_code"], 200);
  EXPECT_EQ(first["response"]["request_id"], "req_00_1");
  EXPECT_EQ(first["response"]["body"]["usage"]["prompt_tokens"], 1);
  EXPECT_TRUE(first["error"].is_null());
  const std::string errors = FileContent(folder_.File("errors"));
  const json refused = json::parse(errors.substr(0, errors.find('\n')));
  EXPECT_EQ(refused["id"], "batch_req_00_3");
  EXPECT_EQ(refused["response"]["status_code"], 400);
  const json unreached = json::parse(errors.substr(errors.rfind('{', errors.size() - 60)));
  EXPECT_EQ(unreached["custom_id"], "id 6");
  EXPECT_TRUE(unreached["response"].is_null());
  EXPECT_EQ(unreached["error"]["code"], "batch_expired");
}

// Of each file any beginning may be there, and zeros where power was lost.
TEST_F(BatchJournalTest, WhateverIsTornBecomesTheSame) {
  WriteRest();
  const std::string output = FileContent(folder_.File("output"));
  const std::string errors = FileContent(folder_.File("errors"));
  constexpr size_t kStep = 41;
  for (size_t i = 0; i <= output.size(); i += kStep) {
    for (size_t j = 0; j <= errors.size(); j += kStep) {
      folder_.Write("output", output.substr(0, i) + std::string(i % 3, '\0'));
      folder_.Write("errors", errors.substr(0, j) + std::string(j % 2 * 40, '\0'));
      WriteRest();
      ASSERT_EQ(FileContent(folder_.File("output")), output) << i << " " << j;
      ASSERT_EQ(FileContent(folder_.File("errors")), errors) << i << " " << j;
    }
  }
}

TEST_F(BatchJournalTest, RecordsOfOthersAreNone) {
  WriteRest();
  const std::string output = FileContent(folder_.File("output"));
  std::string other = output;
  other.replace(other.find("req_00_2"), 8, "req_01_2");
  folder_.Write("output", other);
  WriteRest();
  EXPECT_EQ(FileContent(folder_.File("output")), output);
}

}  // namespace
}  // namespace hippodrome::batch_journal_test
