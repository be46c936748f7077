#include "tools/batch/batch_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::batch_output_test {
namespace {

using testing::HasSubstr;

struct Answered {
  std::string id;
  absl::StatusOr<LineAnswer> answer;
};

std::vector<Answered> Answers() {
  std::vector<Answered> answers;
  for (int i = 0; i < 6; ++i) {
    answers.push_back({i % 2 == 0 ? "\"a\\\",\\\"error\\\":\"" : "",
                       LineAnswer{.json = "[" + std::to_string(i) + "]",
                                  .row = {static_cast<float>(i), 0.5F, -1}}});
  }
  answers[2].answer = InvalidArgument("two");
  answers[3].answer = InvalidArgument("three");
  return answers;
}

using Opener = std::function<absl::StatusOr<std::unique_ptr<BatchOutput>>(const std::string&)>;

void WriteFrom(const Opener& open, const std::string& path) {
  const auto output = *open(path);
  const std::vector<Answered> answers = Answers();
  for (size_t i = output->found().lines; i < answers.size(); ++i) {
    ASSERT_TRUE(output->Append(answers[i].id, answers[i].answer).ok());
  }
  ASSERT_TRUE(output->Finish().ok());
}

// From its beginnings, as a crash leaves them, the file becomes the same. To make files last takes
// time, so not from all of them.
void ExpectGoesOn(const Opener& open, size_t head) {
  constexpr size_t kStep = 11;
  const TemporaryDirectory folder;
  WriteFrom(open, folder.File("whole"));
  const std::string whole = FileContent(folder.File("whole"));
  const std::string errors = FileContent(folder.File("whole.errors.jsonl"));
  for (size_t size = 0; size < whole.size(); size += kStep) {
    std::string torn = whole.substr(0, size);
    std::fill_n(torn.begin(), std::min(head, size), '\0');
    const std::string path = folder.Write("torn", torn);
    folder.Write("torn.errors.jsonl", errors);  // they are written first
    WriteFrom(open, path);
    ASSERT_EQ(FileContent(path), whole) << size;
    ASSERT_EQ(FileContent(folder.File("torn.errors.jsonl")), errors) << size;
  }
}

TEST(BatchOutputTest, JsonLinesHaveAResultOrAnError) {
  const TemporaryDirectory folder;
  WriteFrom(OpenJsonLines, folder.File("out"));
  const std::string text = FileContent(folder.File("out"));
  EXPECT_THAT(text, testing::StartsWith("{\"id\":\"a\\\",\\\"error\\\":\",\"result\":[0]}\n"
                                        "{\"result\":[1]}\n"));
  EXPECT_THAT(text, HasSubstr("{\"error\":{\"message\":\"three\","));
  const auto again = *OpenJsonLines(folder.File("out"));
  EXPECT_EQ(again->found().lines, 6);
  EXPECT_EQ(again->found().errors, 2);
}

TEST(BatchOutputTest, JsonLinesGoOnWhereverTheyWereCut) { ExpectGoesOn(OpenJsonLines, 0); }

TEST(BatchOutputTest, WhatIsNoRecordIsCutOff) {
  const TemporaryDirectory folder;
  const std::string path =
      folder.Write("out", "{\"result\":1}\n" + std::string(20, '\0') + "\n{\"result\":3}\n");
  EXPECT_EQ((*OpenJsonLines(path))->found().lines, 1);
  EXPECT_EQ(FileContent(path), "{\"result\":1}\n");
}

TEST(BatchOutputTest, ErrorsAreToldByTheirPlace) {
  EXPECT_TRUE(IsErrorRecord(R"({"error":{}})"));
  EXPECT_TRUE(IsErrorRecord(R"({"id":1.5,"error":{}})"));
  EXPECT_TRUE(IsErrorRecord(R"({"id":"a\\\",x","error":{}})"));
  EXPECT_FALSE(IsErrorRecord(R"({"id":",\"error\":","result":{}})"));
  EXPECT_FALSE(IsErrorRecord(R"({"result":{"error":1}})"));
  EXPECT_FALSE(IsErrorRecord(R"({"id":"torn)"));
  EXPECT_FALSE(IsErrorRecord(""));
}

Opener Matrix(MatrixFormat format) {
  return [format](const std::string& path) { return OpenMatrix(path, format, 3); };
}

TEST(BatchOutputTest, MatricesGoOnWhereverTheyWereCut) {
  ExpectGoesOn(Matrix(MatrixFormat::kNpy), 128);
  ExpectGoesOn(Matrix(MatrixFormat::kSafetensors), 256);
}

TEST(BatchOutputTest, SafetensorsHasTheRowsAndNaNForErrors) {
  const TemporaryDirectory folder;
  WriteFrom(Matrix(MatrixFormat::kSafetensors), folder.File("out"));
  const auto file = SafetensorsFile::Open(folder.File("out"));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto values = *ToFloats(*(*file)->Get("embeddings", {6, 3}));
  EXPECT_EQ(values[3 * 5], 5);
  EXPECT_EQ(values[3 * 5 + 1], 0.5F);
  EXPECT_TRUE(std::isnan(values[3 * 2]) && std::isnan(values[3 * 3 + 2]));
  EXPECT_THAT(FileContent(folder.File("out.errors.jsonl")),
              HasSubstr("{\"row\":3,\"error\":{\"message\":\"three\""));
}

TEST(BatchOutputTest, TheHeadOfNumPyIsAsItsFormatSays) {
  const std::string head = MatrixHead(MatrixFormat::kNpy, int64_t{1} << 40, 1 << 20);
  ASSERT_EQ(head.size(), 128);
  EXPECT_EQ(head.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  uint16_t length = 0;
  std::memcpy(&length, head.data() + 8, 2);
  EXPECT_EQ(length, 118);
  EXPECT_THAT(head, HasSubstr("'shape': (1099511627776, 1048576), }"));
  EXPECT_EQ(head.back(), '\n');
}

TEST(BatchOutputTest, OneProcessWritesAtATime) {
  const TemporaryDirectory folder;
  const auto first = OpenJsonLines(folder.File("out"));
  EXPECT_THAT(OpenJsonLines(folder.File("out")).status().ToString(),
              HasSubstr("another process writes it"));
}

}  // namespace
}  // namespace hippodrome::batch_output_test
