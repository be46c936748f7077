#include "engine/base/partial_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::partial_file_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class PartialFileTest : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  std::string path_ = directory_.File("file");
};

TEST_F(PartialFileTest, AppearsWhenItIsFinished) {
  const auto file = PartialFile::Create(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("ab").ok());
  ASSERT_TRUE((*file)->Append(std::span<const std::byte>()).ok());
  ASSERT_TRUE((*file)->Append("c").ok());
  EXPECT_EQ((*file)->size(), 3u);
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_TRUE((*file)->Finish().ok());
  EXPECT_EQ(FileContent(path_), "abc");
  EXPECT_FALSE((*file)->open());
  EXPECT_THAT(Message((*file)->Append("d")), HasSubstr("not open for writing"));
}

TEST_F(PartialFileTest, NothingIsLeftOfOneThatIsNot) {
  directory_.Write("file", "old");
  {
    ASSERT_TRUE((*PartialFile::Create(path_))->Append("new").ok());
  }
  const auto failed = PartialFile::Create(path_).value();
  EXPECT_EQ(Message(failed->Fail("no")), path_ + ": no");
  EXPECT_THAT(Message(failed->Finish()), HasSubstr("not open for writing"));
  EXPECT_EQ(FileContent(path_), "old");
  EXPECT_FALSE(fs::exists(path_ + ".partial"));
}

TEST_F(PartialFileTest, PlacesThatCannotBeWrittenAreNamed) {
  const std::string path = directory_.File("none/file");
  EXPECT_THAT(Message(PartialFile::Create(path).status()), StartsWith(path));
}

}  // namespace
}  // namespace hippodrome::partial_file_test
