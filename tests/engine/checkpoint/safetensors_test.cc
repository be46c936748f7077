#include "engine/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::safetensors_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A file with that header and `data_size` bytes 0, 1, 2, ...
std::string File(const std::string& header, size_t data_size) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  file += header;
  for (size_t i = 0; i < data_size; ++i) file += static_cast<char>(i);
  return file;
}

absl::StatusOr<SafetensorsIndex> Parse(const std::string& file) {
  return ParseSafetensors(std::as_bytes(std::span(file)));
}

TEST(Safetensors, GivesEveryTensorAndTheMetadata) {
  const std::string file = File(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},)"
      R"("a":{"shape":[2,1],"dtype":"I32","data_offsets":[0,8]}}   )",
      11);
  const auto index = Parse(file);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(index->tensors.size(), 2u);
  const TensorView& a = index->tensors.at("a");
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype, DType::kI32);
  EXPECT_THAT(a.shape, ElementsAre(2, 1));
  EXPECT_EQ(a.elements(), 2);
  EXPECT_EQ(a.data.size(), 8u);
  EXPECT_EQ(a.data[7], std::byte{7});
  EXPECT_EQ(index->tensors.at("b").data[0], std::byte{8});
}

TEST(Safetensors, AcceptsNoTensors) { EXPECT_TRUE(Parse(File("{}", 0)).ok()); }

TEST(Safetensors, AcceptsTensorsWithoutElementsAndScalars) {
  const auto index = Parse(File(R"({"a":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},)"
                                R"("b":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
                                R"("c":{"dtype":"F64","shape":[0],"data_offsets":[1,1]}})",
                                1));
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->tensors.at("a").elements(), 0);
  EXPECT_EQ(index->tensors.at("b").elements(), 1);
}

TEST(Safetensors, KnowsEveryDtype) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                      DType::kI8, DType::kU8}) {
    const std::string bytes = std::to_string(SizeOf(dtype));
    const auto index = Parse(File(std::string(R"({"x":{"dtype":")") + Name(dtype) +
                                      R"(","shape":[1],"data_offsets":[0,)" + bytes + "]}}",
                                  SizeOf(dtype)));
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(index->tensors.at("x").dtype, dtype);
  }
}

class OpenSafetensors : public testing::Test {
 protected:
  TemporaryDirectory directory_;
};

TEST_F(OpenSafetensors, FindsTensorsByNameAndShape) {
  const std::string path = directory_.Write(
      "x.safetensors", File(R"({"x":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]}})", 6));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), path);
  EXPECT_EQ((*file)->Find("y"), nullptr);
  ASSERT_TRUE((*file)->Get("x", {2, 3}).ok());
  EXPECT_TRUE(absl::IsNotFound((*file)->Get("y", {2, 3}).status()));
  const absl::Status wrong = (*file)->Get("x", {3, 2}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong));
  EXPECT_EQ(Message(wrong), path + ": tensor \"x\" has shape [2, 3], expected [3, 2]");
}

TEST_F(OpenSafetensors, ReadsDroppedTensorsAgain) {
  constexpr size_t kSize = 40000;
  const std::string path = directory_.Write(
      "x.safetensors",
      File(R"({"x":{"dtype":"U8","shape":[40000],"data_offsets":[0,40000]}})", kSize));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const TensorView& tensor = *(*file)->Find("x");
  (*file)->Drop(tensor);
  for (size_t i = 0; i < kSize; ++i) {
    ASSERT_EQ(tensor.data[i], static_cast<std::byte>(i)) << i;
  }
}

TEST_F(OpenSafetensors, TellsWhatIsNoFile) {
  EXPECT_TRUE(absl::IsNotFound(SafetensorsFile::Open(directory_.File("absent")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(SafetensorsFile::Open(directory_.path()).status()));
  const std::string empty = directory_.Write("empty", "");
  EXPECT_THAT(Message(SafetensorsFile::Open(empty).status()), HasSubstr(empty + ": "));
}

}  // namespace
}  // namespace hippodrome::safetensors_test
