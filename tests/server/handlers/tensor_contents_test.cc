#include "server/handlers/tensor_contents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace hippodrome::tensor_contents_test {
namespace {

using inference::ModelInferRequest;
using testing::HasSubstr;

constexpr int64_t kMost = int64_t{1} << 20;

TensorShape Shape(const std::vector<int64_t>& sizes) { return {sizes.begin(), sizes.end()}; }

std::string Raw(const std::vector<std::string>& texts) {
  inference::ModelInferResponse::InferOutputTensor output;
  output.set_datatype("BYTES");
  for (const std::string& text : texts) output.mutable_contents()->add_bytes_contents(text);
  return RawContents(output);
}

ModelInferRequest Request(const std::vector<int64_t>& shape) {
  ModelInferRequest request;
  auto& input = *request.add_inputs();
  input.set_name("text");
  input.set_datatype("BYTES");
  *input.mutable_shape() = Shape(shape);
  return request;
}

TEST(TensorContentsTest, ElementsAreCountedWithoutOverflow) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(CountElements(Shape({}), kMost).value(), 1);
  EXPECT_EQ(CountElements(Shape({2, 3, 4}), kMost).value(), 24);
  EXPECT_EQ(CountElements(Shape({kHuge, 0}), kHuge).value(), 0);
  EXPECT_EQ(CountElements(Shape({0, kHuge, kHuge}), kMost).value(), 0);
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{-1},
                                         {2, -3},
                                         {kMost + 1},
                                         {1 << 20, 2},
                                         {kHuge, kHuge},
                                         {1LL << 32, 1LL << 32},
                                         {std::numeric_limits<int64_t>::min()}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CountElements(Shape(shape), kMost).status()))
        << testing::PrintToString(shape);
  }
}

TEST(TensorContentsTest, TextsComeBackFromTheirRawForm) {
  const std::vector<std::string> texts = {"", "a", std::string("\0\xff", 2), std::string(300, 'x')};
  EXPECT_EQ(SplitTexts(Raw(texts), 4).value(), texts);
  EXPECT_EQ(Raw({"ab"}), std::string("\2\0\0\0ab", 6));
  EXPECT_TRUE(SplitTexts("", 0).value().empty());
}

TEST(TensorContentsTest, RawBytesThatDoNotFitAreRefused) {
  struct Row {
    std::string raw;
    int64_t count;
    const char* what;
  };
  const Row rows[] = {
      {"", 1, "end before text 0"},
      {std::string("\1\0\0", 3), 1, "end before text 0"},
      {std::string("\2\0\0\0a", 5), 1, "has 2 bytes, but 1 are left"},
      {std::string("\xff\xff\xff\xff", 4), 1, "has 4294967295 bytes"},
      {std::string("\1\0\0\0ab", 6), 1, "1 bytes behind"},
      {std::string("\1\0\0\0a", 5), 2, "end before text 1"},
      {"a", 0, "1 bytes behind"},
      {std::string("\0\0\0\0", 4), kMost, "end before text 1"},
  };
  for (const Row& row : rows) {
    const auto texts = SplitTexts(row.raw, row.count);
    EXPECT_TRUE(absl::IsInvalidArgument(texts.status()));
    EXPECT_THAT(Message(texts.status()), HasSubstr(row.what));
  }
}

TEST(TensorContentsTest, ArbitraryBytesNeitherCrashNorGiveAnotherNumberOfTexts) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string raw(random() % 24, '\0');
    for (char& c : raw) c = static_cast<char>(random() % 3 == 0 ? random() : random() % 5);
    const int64_t count = random() % 5;
    const auto texts = SplitTexts(raw, count);
    if (!texts.ok()) continue;
    EXPECT_EQ(std::ssize(*texts), count);
    EXPECT_EQ(Raw(*texts), raw);
  }
}

TEST(TensorContentsTest, InputsAreReadFromEitherForm) {
  ModelInferRequest plain = Request({2, 1});
  plain.mutable_inputs(0)->mutable_contents()->add_bytes_contents("a");
  plain.mutable_inputs(0)->mutable_contents()->add_bytes_contents("b");
  const std::vector<std::string> both = {"a", "b"};
  EXPECT_EQ(ReadTexts(plain, 0, kMost).value(), both);
  ModelInferRequest raw = Request({2});
  raw.add_raw_input_contents(Raw(both));
  EXPECT_EQ(ReadTexts(raw, 0, kMost).value(), both);
}

TEST(TensorContentsTest, InputsThatContradictThemselvesAreRefused) {
  ModelInferRequest fewer = Request({3});
  fewer.mutable_inputs(0)->mutable_contents()->add_bytes_contents("a");
  EXPECT_THAT(Message(ReadTexts(fewer, 0, kMost).status()), HasSubstr("1 texts, but the shape"));
  ModelInferRequest huge = Request({1LL << 40});
  huge.add_raw_input_contents("");
  EXPECT_THAT(Message(ReadTexts(huge, 0, kMost).status()), HasSubstr("more than 1048576"));
  ModelInferRequest twice = Request({1});
  twice.mutable_inputs(0)->mutable_contents()->add_bytes_contents("a");
  twice.add_raw_input_contents(Raw({"a"}));
  EXPECT_THAT(Message(ReadTexts(twice, 0, kMost).status()), HasSubstr("beside"));
  ModelInferRequest more = Request({1});
  more.add_raw_input_contents(Raw({"a"}));
  more.add_raw_input_contents(Raw({"a"}));
  EXPECT_THAT(Message(ReadTexts(more, 0, kMost).status()), HasSubstr("raw_input_contents"));
  ModelInferRequest floats = Request({1});
  floats.mutable_inputs(0)->set_datatype("FP32");
  EXPECT_THAT(Message(ReadTexts(floats, 0, kMost).status()), HasSubstr("expected BYTES"));
}

TEST(TensorContentsTest, OutputsBecomeRaw) {
  inference::ModelInferResponse response;
  auto& scores = *response.add_outputs();
  scores.set_datatype("FP32");
  scores.mutable_contents()->add_fp32_contents(1);
  auto& places = *response.add_outputs();
  places.set_datatype("INT64");
  places.mutable_contents()->add_int64_contents(-2);
  auto& ids = *response.add_outputs();
  ids.set_datatype("INT32");
  ids.mutable_contents()->add_int_contents(258);
  MakeRaw(response);
  ASSERT_EQ(response.raw_output_contents_size(), 3);
  EXPECT_EQ(response.raw_output_contents(0), std::string("\0\0\x80\x3f", 4));
  EXPECT_EQ(response.raw_output_contents(1), std::string("\xfe") + std::string(7, '\xff'));
  EXPECT_EQ(response.raw_output_contents(2), std::string("\2\1\0\0", 4));
  for (const auto& output : response.outputs()) EXPECT_FALSE(output.has_contents());
}

}  // namespace
}  // namespace hippodrome::tensor_contents_test
