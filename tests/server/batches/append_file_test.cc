#include "server/batches/append_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <memory>
#include <string>

#include "tests/testing/temporary_directory.h"

namespace hippodrome::append_file_test {
namespace {

// Files of this process have so many bytes at most, while it lives.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_;
};

TEST(AppendFileTest, AddsToWhatIsThere) {
  const TemporaryDirectory folder;
  const auto file = *AppendFile::Open(folder.Write("file", "one"));
  EXPECT_EQ(file->size(), 3);
  EXPECT_TRUE(file->Append("two").ok());
  EXPECT_EQ(FileContent(file->path()), "one");
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_EQ(FileContent(file->path()), "onetwo");
  EXPECT_TRUE(file->Truncate(4).ok());
  EXPECT_TRUE(file->Append("!").ok());
  EXPECT_TRUE(file->Flush().ok());
  EXPECT_EQ(FileContent(file->path()), "onet!");
}

TEST(AppendFileTest, WhatFoundNoRoomIsWrittenOnceLater) {
  const TemporaryDirectory folder;
  const auto file = *AppendFile::Open(folder.File("file"));
  ASSERT_TRUE(file->Append("0123456789").ok());
  {
    const FullDisk full(4);
    EXPECT_FALSE(file->Flush().ok());
    EXPECT_FALSE(file->Flush().ok());
  }
  ASSERT_TRUE(file->Append("ab").ok());
  EXPECT_EQ(file->size(), 12);
  EXPECT_TRUE(file->Flush().ok());
  EXPECT_EQ(FileContent(file->path()), "0123456789ab");
}

TEST(AppendFileTest, AFileHasOneWriter) {
  const TemporaryDirectory folder;
  const auto file = *AppendFile::Open(folder.File("file"));
  EXPECT_TRUE(absl::IsFailedPrecondition(AppendFile::Open(file->path()).status()));
  EXPECT_FALSE(AppendFile::Open(folder.path()).ok());
}

}  // namespace
}  // namespace hippodrome::append_file_test
