#include "tools/convert/model_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/convert/bigs_files.h"
#include "tests/tools/convert/convert_fixture.h"
#include "tools/convert/export.h"

namespace hippodrome::model_card_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kData = std::string(HIPPODROME_TESTDATA) + "/convert/";

class ModelCardTest : public ConvertFixture {
 protected:
  std::string Card(const std::string& directory) { return FileContent(directory + "/README.md"); }

  TemporaryDirectory directory_;
};

TEST_F(ModelCardTest, SaysWhatTheModelIsAndWhatItIsMadeFrom) {
  ASSERT_EQ(Error({.source = kData + "weights.pt", .matrix_dtype = DType::kBF16}), "OK");
  const std::string card = Card(out_);
  EXPECT_THAT(card, StartsWith("<!-- Written by hippodrome, which replaces this file; without"));
  EXPECT_THAT(card, HasSubstr("\n# A decoder of the H3 family\n"));
  EXPECT_THAT(card, HasSubstr("\n| mixer | h3 |\n| layers | 3 |\n"
                              "| attention | in layers 1, counted from 0, 2 heads |\n"
                              "| width | 32 |\n| vocabulary | 60 |\n| parameters | 42,976 |\n"
                              "| weights | bf16 |\n"));
  EXPECT_THAT(card, HasSubstr("`weights.pt`, by `hippodrome convert` with `config.json`.\n"));
  EXPECT_THAT(card, HasSubstr("\n    hippodrome serve --model model=.\n"));
  EXPECT_THAT(card, HasSubstr("must be measured: `hippodrome eval`"));
  EXPECT_THAT(card, Not(HasSubstr(kData)));
}

TEST_F(ModelCardTest, ExportsSayHowTheyAreServed) {
  ASSERT_EQ(
      Error({.source = WriteModelFile(RandomBigs(SmallBigs())), .matrix_dtype = DType::kBF16}),
      "OK");
  const ExportOptions options = {
      .model = out_, .format = ExportFormat::kFlax, .out = directory_.File("exported")};
  ASSERT_TRUE(Export(options, [](int64_t, int64_t) {}).ok());
  const std::string card = Card(options.out);
  EXPECT_THAT(card, HasSubstr("# An encoder of the BiGS family"));
  EXPECT_THAT(card, HasSubstr("| class | BiGSForMaskedLM |"));
  EXPECT_THAT(card, HasSubstr("| longest input | 17 |"));
  EXPECT_THAT(card, HasSubstr(", by `hippodrome export --format flax`."));
  EXPECT_THAT(card, HasSubstr("    hippodrome convert . --out MODEL --dtype bf16 && hippodrome "
                              "serve --model MODEL\n"));
}

TEST_F(ModelCardTest, WhatAPersonWroteStays) {
  const ConvertOptions options = {.source = kData + "weights.pt"};
  std::filesystem::create_directory(out_);
  std::ofstream(out_ + "/README.md") << "mine";
  ASSERT_TRUE(Run(options).ok());
  EXPECT_EQ(Card(out_), "mine");
  std::filesystem::remove(out_ + "/README.md");
  ASSERT_TRUE(Run(options).ok());
  const std::string card = Card(out_);
  std::ofstream(out_ + "/README.md", std::ios::app) << "more";
  ASSERT_TRUE(Run(options).ok());
  EXPECT_EQ(Card(out_), card);
  const std::string own = card.substr(card.find('\n') + 1);
  std::ofstream(out_ + "/README.md") << own;
  ASSERT_TRUE(Run(options).ok());
  EXPECT_EQ(Card(out_), own);
}

TEST_F(ModelCardTest, FileNamesHaveNeitherFoldersNorMarks) {
  EXPECT_EQ(CardFileName("/a/b.pt"), "`b.pt`");
  EXPECT_EQ(CardFileName("b"), "`b`");
  EXPECT_EQ(CardFileName("/a/b/"), "`b`");
  EXPECT_EQ(CardFileName("/a/./b/."), "`b`");
  EXPECT_EQ(CardFileName("/a/x`y\n"), "`x?y?`");
}

TEST_F(ModelCardTest, ConfigsMustBeWhole) {
  EXPECT_FALSE(ModelCardText({.config_json = "{}"}).ok());
  EXPECT_FALSE(ModelCardText({.config_json = "["}).ok());
}

}  // namespace
}  // namespace hippodrome::model_card_test
