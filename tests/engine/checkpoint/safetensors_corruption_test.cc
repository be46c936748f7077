// Files that must be refused, each with one clear line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome::safetensors_corruption_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string WithLength(uint64_t length, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + rest;
}

std::string File(const std::string& header, size_t data_size) {
  return WithLength(header.size(), header + std::string(data_size, '\0'));
}

// A file with one tensor "x" and 8 bytes of data.
std::string OneTensor(const std::string& entry) { return File("{\"x\":" + entry + "}", 8); }

std::string Entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

struct BadFile {
  std::string name;
  std::string bytes;
  std::string message;  // part of the error
};

void PrintTo(const BadFile& file, std::ostream* out) { *out << file.name; }

std::vector<BadFile> BadFiles() {
  const std::string good = File("{\"x\":" + Entry("F32", "[2]", "[0,8]") + "}", 8);
  const std::string first = "\"a\":" + Entry("F32", "[1]", "[0,4]");
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  return {
      {"Empty", "", "the file has 0 bytes"},
      {"CutInLength", good.substr(0, 5), "the file has 5 bytes"},
      {"CutInHeader", good.substr(0, 30), "the header length is"},
      {"CutInData", good.substr(0, good.size() - 1), "the file has only 7 bytes"},
      {"TrailingBytes", good + "x", "9 bytes of data, but the tensors take 8"},
      {"HeaderBeyondFile", WithLength(1000, "{}"), "the header length is 1000, expected at most 2"},
      {"HugeHeader", WithLength(UINT64_MAX, "{}"), "the header length is 18446744073709551615"},
      {"HeaderLengthNear2To63", WithLength(INT64_MAX - 7, "{}"), "the header length is"},
      {"EmptyHeader", File("", 0), "the header is not JSON"},
      {"NotJson", File("hello", 0), "the header is not JSON"},
      {"OpenObject", File("{\"x\":", 0), "the header is not JSON"},
      {"NotUtf8", File("{\"\xff\":{}}", 0), "the header is not JSON"},
      {"HugeNumber", OneTensor(Entry("F32", "[1e999]", "[0,8]")), "the header is not JSON"},
      {"Array", File("[]", 0), "an array where an object is expected"},
      {"Number", File("7", 0), "a number where an object is expected"},
      {"TensorIsNumber", File("{\"x\":7}", 0), "a number where an object is expected"},
      {"Deep", File(deep, 0), "an array where an object is expected"},
      {"DeepShape", OneTensor(Entry("F32", deep, "[0,8]")), "unexpected an array at \"shape\""},
      {"NestedObject", OneTensor("{\"dtype\":{}}"), "unexpected an object at \"dtype\""},
      {"DuplicateName", File("{" + first + "," + first + "}", 4), "\"a\": the name appears twice"},
      {"DuplicateField", OneTensor("{\"shape\":[],\"shape\":[]}"), "duplicate shape"},
      {"DuplicateDtype", OneTensor("{\"dtype\":\"U8\",\"dtype\":\"U8\"}"), "duplicate dtype"},
      {"UnknownField", OneTensor("{\"color\":\"red\"}"), "unexpected a string at \"color\""},
      {"UnknownDtype", OneTensor(Entry("F8_E4M3", "[8]", "[0,8]")),
       "tensor \"x\": dtype F8_E4M3 is not supported"},
      {"NoDtype", OneTensor("{\"shape\":[2],\"data_offsets\":[0,8]}"), "dtype is missing"},
      {"NoShape", OneTensor("{\"dtype\":\"F32\",\"data_offsets\":[0,8]}"), "shape is missing"},
      {"NoOffsets", OneTensor("{\"dtype\":\"F32\",\"shape\":[2]}"), "expected two data_offsets"},
      {"OneOffset", OneTensor(Entry("F32", "[2]", "[8]")), "expected two data_offsets"},
      {"ThreeOffsets", OneTensor(Entry("F32", "[2]", "[0,8,8]")), "expected two data_offsets"},
      {"NegativeShape", OneTensor(Entry("F32", "[-2]", "[0,8]")), "unexpected a negative number"},
      {"FractionalShape", OneTensor(Entry("F32", "[2.0]", "[0,8]")), "unexpected a fraction"},
      {"TextShape", OneTensor(Entry("F32", "[\"2\"]", "[0,8]")), "unexpected a string"},
      {"NullShape", OneTensor(Entry("F32", "null", "[0,8]")), "unexpected null"},
      {"BooleanShape", OneTensor(Entry("F32", "true", "[0,8]")), "unexpected a boolean"},
      {"ManyDimensions", OneTensor(Entry("U8", "[8,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,8]")),
       "more than 16 numbers"},
      {"DimensionBeyond2To63", OneTensor(Entry("U8", "[9223372036854775808]", "[0,8]")),
       "beyond 2^63"},
      {"ProductOverflows", OneTensor(Entry("U8", "[4294967296,4294967296]", "[0,8]")),
       "shape [4294967296, 4294967296] is too large"},
      {"BytesOverflow", OneTensor(Entry("F32", "[4611686018427387906]", "[0,8]")), "is too large"},
      {"OverflowBeforeZero", OneTensor(Entry("U8", "[4294967296,4294967296,0]", "[0,0]")),
       "is too large"},
      {"OffsetsNear2To63",
       OneTensor(Entry("U8", "[8]", "[9223372036854775799,9223372036854775807]")), "expected 0"},
      {"OffsetsReversed", OneTensor(Entry("F32", "[2]", "[8,0]")), "data_offsets are [8, 0]"},
      {"WrongSize", OneTensor(Entry("F64", "[2]", "[0,8]")),
       "data_offsets are [0, 8], but F64 [2] takes 16 bytes"},
      {"Gap", File("{" + first + ",\"b\":" + Entry("U8", "[2]", "[6,8]") + "}", 8),
       "\"b\": the data begin at 6, expected 4: the tensors leave a gap"},
      {"Overlap", File("{" + first + ",\"b\":" + Entry("U8", "[6]", "[2,8]") + "}", 8),
       "\"b\": the data begin at 2, expected 4: the tensors overlap"},
      {"SameData", File("{" + first + ",\"b\":" + Entry("F32", "[1]", "[0,4]") + "}", 4),
       "the tensors overlap"},
      {"MetadataNumber", File("{\"__metadata__\":{\"a\":1}}", 0), "unexpected a number at \"a\""},
      {"MetadataTwice", File("{\"__metadata__\":{\"a\":\"\"},\"__metadata__\":{}}", 0),
       "the name appears twice"},
      {"NewlineInName", File("{\"a\\nb\":{}}", 0), "tensor \"a?b\": dtype is missing"},
  };
}

class SafetensorsCorruption : public testing::TestWithParam<BadFile> {};

TEST_P(SafetensorsCorruption, IsOneClearError) {
  const auto index = ParseSafetensors(std::as_bytes(std::span(GetParam().bytes)));
  ASSERT_TRUE(absl::IsInvalidArgument(index.status())) << index.status();
  EXPECT_THAT(Message(index.status()), HasSubstr(GetParam().message));
  EXPECT_THAT(Message(index.status()), Not(HasSubstr("\n")));
  EXPECT_LT(index.status().message().size(), 300u);
}

INSTANTIATE_TEST_SUITE_P(All, SafetensorsCorruption, testing::ValuesIn(BadFiles()),
                         [](const auto& info) { return info.param.name; });

TEST(SafetensorsCorruptionCuts, EveryCutIsRefused) {
  const std::string good = File("{\"x\":" + Entry("F32", "[2]", "[0,8]") + "}", 8);
  ASSERT_TRUE(ParseSafetensors(std::as_bytes(std::span(good))).ok());
  for (size_t size = 0; size < good.size(); ++size) {
    const std::string cut = good.substr(0, size);
    EXPECT_FALSE(ParseSafetensors(std::as_bytes(std::span(cut))).ok()) << size;
  }
}

}  // namespace
}  // namespace hippodrome::safetensors_corruption_test
