// What the tests of whole conversions share.
#ifndef HIPPODROME_TESTS_TOOLS_CONVERT_CONVERT_FIXTURE_H_
#define HIPPODROME_TESTS_TOOLS_CONVERT_CONVERT_FIXTURE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "engine/base/status.h"
#include "tests/tools/convert/model_file.h"
#include "tests/tools/convert/torch_builder.h"
#include "tools/convert/convert.h"

namespace hippodrome {

// Converts into a directory that does not exist yet.
class ConvertFixture : public testing::Test {
 protected:
  void SetUp() override {
    out_ = WriteTemporary("out", "");
    std::filesystem::remove_all(out_);
  }

  absl::Status Run(ConvertOptions options) {
    options.out = out_;
    return Convert(options, [](int64_t, int64_t) {}).status();
  }
  // The message; "OK" without an error. Only then there is something.
  std::string Error(const ConvertOptions& options) {
    const absl::Status status = Run(options);
    EXPECT_EQ(std::filesystem::exists(out_), status.ok());
    return status.ok() ? "OK" : Message(status);
  }

  // What was written.
  ModelFile Written() { return ReadModelFile(out_ + "/model.safetensors"); }
  static void ExpectEqual(const ModelFile& written, const ModelFile& expected) {
    ASSERT_EQ(written.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      ASSERT_TRUE(written.contains(name)) << name;
      EXPECT_EQ(written.at(name).shape, tensor.shape) << name;
      EXPECT_EQ(written.at(name).values, tensor.values) << name;
    }
  }

  std::string out_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TOOLS_CONVERT_CONVERT_FIXTURE_H_
