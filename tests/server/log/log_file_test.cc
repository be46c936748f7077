#include "server/log/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/temporary_directory.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::log_file_test {
namespace {

class LogFileTest : public testing::Test {
 protected:
  void Open() { file_.Open(OpenFile::ToAppend(path_).value()); }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.File("log");
  LogFile file_;
};

TEST_F(LogFileTest, ManyThreadsWriteWholeLines) {
  Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) file_.Write(std::string(50, static_cast<char>('a' + t)) + "\n");
    });
  }
  for (std::thread& thread : threads) thread.join();
  file_.Close();
  std::istringstream lines(FileContent(path_));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_EQ(line, std::string(50, line.at(0)));
  }
  EXPECT_EQ(count, 2000);
  EXPECT_EQ(file_.dropped(), 0);
}

TEST_F(LogFileTest, AMovedFileIsMadeAnew) {
  Open();
  file_.Write("one\n");
  ASSERT_TRUE(WaitUntil([&] { return FileContent(path_) == "one\n"; }));
  std::filesystem::rename(path_, path_ + ".1");
  Open();
  ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(path_); }));
  file_.Write("two\n");
  file_.Close();
  EXPECT_EQ(FileContent(path_ + ".1"), "one\n");
  EXPECT_EQ(FileContent(path_), "two\n");
}

TEST_F(LogFileTest, WhatIsClosedTakesNothing) {
  file_.Write("before\n");
  Open();
  file_.Close();
  file_.Write("after\n");
  EXPECT_EQ(FileContent(path_), "");
  Open();
  file_.Write("again\n");
  file_.Close();
  EXPECT_EQ(FileContent(path_), "again\n");
}

TEST_F(LogFileTest, ASlowReaderDelaysNobodyAndCostsLines) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  file_.Open(OpenFile(ends[1]));
  const std::string line = std::string(999, 'x') + "\n";
  const int64_t lines = 2 * LogFile::kMostWaitingBytes / 1000;
  for (int64_t i = 0; i < lines; ++i) file_.Write(line);
  EXPECT_GT(file_.dropped(), lines / 4);
  file_.Close();
  // What is in the pipe is whole.
  std::string seen(1000, '\0');
  EXPECT_EQ(read(ends[0], seen.data(), seen.size()), 1000);
  EXPECT_EQ(seen, line);
  close(ends[0]);
}

TEST(OpenFileTest, AnErrorNamesTheFile) {
  const auto file = OpenFile::ToAppend("/nowhere/at/all");
  EXPECT_NE(file.status().message().find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace hippodrome::log_file_test
