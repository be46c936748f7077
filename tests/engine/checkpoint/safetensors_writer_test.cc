#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::safetensors_writer_test {
namespace {

using testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

class SafetensorsWriterTest : public testing::Test {
 protected:
  bool DirectoryIsEmpty() const { return std::filesystem::is_empty(directory_.path()); }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.File("x.safetensors");
};

TEST_F(SafetensorsWriterTest, WritesWhatTheReaderReads) {
  auto writer = SafetensorsWriter::Create(
      path_, {{"z", DType::kU8, {3}}, {"a", DType::kF32, {0}}, {"b", DType::kI32, {}}},
      {{"format", "pt"}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(Bytes("xy")).ok());
  ASSERT_TRUE((*writer)->Append(Bytes("z0123")).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE((*writer)->Finish().ok());
  const auto file = SafetensorsFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->metadata().at("format"), "pt");
  const TensorView* z = (*file)->Find("z");
  ASSERT_NE(z, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(z->data.data()) % 64, 0u);
  EXPECT_EQ(std::memcmp(z->data.data(), "xyz0123", 7), 0);
  EXPECT_EQ((*file)->Find("b")->data.data() - z->data.data(), 3);
  EXPECT_EQ((*file)->Find("a")->elements(), 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(SafetensorsWriterTest, LeavesNothingWhenItIsNotFinished) {
  {
    auto writer = SafetensorsWriter::Create(path_, {{"x", DType::kU8, {3}}});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(Bytes("ab")).ok());
  }
  EXPECT_TRUE(DirectoryIsEmpty());
}

TEST_F(SafetensorsWriterTest, KeepsTheOldFileUntilTheNewOneIsWhole) {
  directory_.Write("x.safetensors", "old");
  auto writer = SafetensorsWriter::Create(path_, {{"x", DType::kU8, {1}}});
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(FileContent(path_), "old");
  ASSERT_TRUE((*writer)->Append(Bytes("n")).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_TRUE(SafetensorsFile::Open(path_).ok());
}

TEST_F(SafetensorsWriterTest, RefusesMoreOrLessThanAnnounced) {
  auto more = SafetensorsWriter::Create(path_, {{"x", DType::kU8, {1}}});
  EXPECT_THAT(Message((*more)->Append(Bytes("abc"))), HasSubstr("2 bytes more than announced"));
  EXPECT_TRUE(absl::IsFailedPrecondition((*more)->Append(Bytes("a"))));
  EXPECT_TRUE(absl::IsFailedPrecondition((*more)->Finish()));
  auto less = SafetensorsWriter::Create(path_, {{"x", DType::kU8, {1}}});
  EXPECT_THAT(Message((*less)->Finish()), HasSubstr("1 bytes fewer than announced"));
  EXPECT_TRUE(DirectoryIsEmpty());
}

TEST_F(SafetensorsWriterTest, RefusesBadSpecs) {
  const std::vector<std::vector<TensorSpec>> bad = {
      {{"x", DType::kU8, {1}}, {"x", DType::kU8, {1}}},
      {{"x", DType::kU8, {-1}}},
      {{"x", DType::kF32, {INT64_MAX}}},
      {{"x", DType::kU8, {INT64_MAX}}, {"y", DType::kU8, {INT64_MAX}}},
      {{"\xff", DType::kU8, {1}}},
  };
  for (const auto& specs : bad) {
    EXPECT_TRUE(absl::IsInvalidArgument(SafetensorsWriter::Create(path_, specs).status()));
  }
  EXPECT_TRUE(DirectoryIsEmpty());
}

TEST_F(SafetensorsWriterTest, TellsWhereItCannotWrite) {
  const auto writer = SafetensorsWriter::Create(directory_.File("no/x"), {});
  EXPECT_THAT(Message(writer.status()), HasSubstr("No such file or directory"));
}

TEST_F(SafetensorsWriterTest, TellsThatTheDiskIsFull) {
  std::filesystem::create_symlink("/dev/full", path_ + ".partial");
  constexpr int64_t kSize = 1 << 20;
  auto writer = SafetensorsWriter::Create(path_, {{"x", DType::kU8, {kSize}}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  const absl::Status status = (*writer)->Append(Bytes(std::string(kSize, 'x')));
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(Message(status), HasSubstr("No space left on device"));
  EXPECT_TRUE(DirectoryIsEmpty());
}

}  // namespace
}  // namespace hippodrome::safetensors_writer_test
