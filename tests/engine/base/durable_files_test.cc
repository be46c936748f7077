#include "engine/base/durable_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::durable_files_test {
namespace {

namespace fs = std::filesystem;

class DurableFilesTest : public testing::Test {
 protected:
  size_t Entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_.path()), {}));
  }

  TemporaryDirectory directory_;
};

TEST_F(DurableFilesTest, WritesAndReplacesAFile) {
  const std::string path = directory_.File("file");
  ASSERT_TRUE(WriteFileDurably(path, "old").ok());
  ASSERT_TRUE(WriteFileDurably(path, "new").ok());
  EXPECT_EQ(FileContent(path), "new");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(DurableFilesTest, AFileThatCannotBeWrittenWholeIsGone) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string path = directory_.File("file");
  const std::string failure = Message(WriteSynced(path, std::string(1 << 16, 'x')));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(failure, path + ": File too large");
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(DurableFilesTest, ReplacesAFolderWithAllThatIsInIt) {
  const std::string to = directory_.File("model"), from = directory_.File("model.tmp");
  for (const char* text : {"first", "second"}) {
    ASSERT_TRUE(MakeDirectories(from).ok());
    ASSERT_TRUE(WriteFileDurably(from + "/" + text, text).ok());
    const absl::Status replaced = ReplaceDirectory(from, to);
    ASSERT_TRUE(replaced.ok()) << replaced;
  }
  EXPECT_EQ(FileContent(to + "/second"), "second");
  EXPECT_FALSE(fs::exists(to + "/first"));
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(DurableFilesTest, RemovesWhatIsThereAndWhatIsNot) {
  ASSERT_TRUE(MakeDirectories(directory_.File("a/b/c")).ok());
  EXPECT_TRUE(RemoveTree(directory_.File("a")).ok());
  EXPECT_TRUE(RemoveTree(directory_.File("a")).ok());
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(DurableFilesTest, ErrorsNameThePath) {
  const std::string file = directory_.Write("file", "");
  const auto starts = [](const std::string& path) { return testing::StartsWith(path + ": "); };
  EXPECT_THAT(Message(SyncPath(directory_.File("none"))), starts(directory_.File("none")));
  EXPECT_THAT(Message(WriteFileDurably(file + "/x", "")), starts(file + "/x.tmp"));
  EXPECT_THAT(Message(MakeDirectories(file + "/x")), starts(file + "/x"));
  EXPECT_THAT(Message(MakeDirectories(file)), starts(file));
  EXPECT_THAT(Message(RenameDurably(directory_.File("none"), file)), starts(file));
}

}  // namespace
}  // namespace hippodrome::durable_files_test
