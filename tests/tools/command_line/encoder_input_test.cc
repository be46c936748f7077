#include "tools/command_line/encoder_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "engine/checkpoint/safetensors.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::encoder_input_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Integers {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<int64_t> values;
};

class EncoderInputTest : public testing::Test {
 protected:
  absl::StatusOr<EncoderInputs> Read(const std::vector<Integers>& tensors,
                                     DType dtype = DType::kI64) {
    const std::string path = directory_.File("in.safetensors");
    std::vector<TensorSpec> specs;
    for (const Integers& tensor : tensors) specs.push_back({tensor.name, dtype, tensor.shape});
    const auto writer = SafetensorsWriter::Create(path, specs).value();
    for (const Integers& tensor : tensors) {
      EXPECT_TRUE(writer->Append(std::as_bytes(std::span(tensor.values))).ok());
    }
    EXPECT_TRUE(writer->Finish().ok());
    return ReadEncoderInputs(path);
  }
  std::string ErrorOf(const std::vector<Integers>& tensors, DType dtype = DType::kI64) {
    return std::string(Read(tensors, dtype).status().message());
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(EncoderInputTest, ReadsAllThree) {
  const auto inputs = Read({{"input_ids", {2, 2}, {5, 6, 7, 8}},
                            {"attention_mask", {2, 2}, {1, 1, 1, 0}},
                            {"token_type_ids", {2, 2}, {0, 1, 0, 1}}});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ(inputs->batch, 2);
  EXPECT_EQ(inputs->length, 2);
  EXPECT_THAT(inputs->ids, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(inputs->mask, ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(inputs->types, ElementsAre(0, 1, 0, 1));
}

TEST_F(EncoderInputTest, WithoutMaskAndTypesAllTokensCount) {
  const auto inputs = Read({{"input_ids", {1, 3}, {5, 6, 7}}});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT(inputs->mask, ElementsAre(1, 1, 1));
  EXPECT_THAT(inputs->types, ElementsAre(0, 0, 0));
  const EncoderInputs one = OneEncoderInput({5, 6, 7});
  EXPECT_EQ(one.batch, 1);
  EXPECT_EQ(one.length, 3);
  EXPECT_EQ(one.ids, inputs->ids);
  EXPECT_EQ(one.mask, inputs->mask);
  EXPECT_EQ(one.types, inputs->types);
}

TEST_F(EncoderInputTest, ErrorsNameTheTensor) {
  const Integers ids = {"input_ids", {1, 2}, {5, 6}};
  EXPECT_THAT(ErrorOf({{"other", {1, 1}, {1}}}), HasSubstr("there is no tensor input_ids"));
  EXPECT_THAT(ErrorOf({{"input_ids", {2}, {5, 6}}}),
              HasSubstr("input_ids has 1 dimensions, expected [B, L]"));
  EXPECT_THAT(ErrorOf({{"input_ids", {2, 2}, {5, 6, -7, 8}}}),
              HasSubstr("input_ids[1, 0] is -7, expected an integer in [0, 2^31)"));
  EXPECT_THAT(ErrorOf({ids, {"attention_mask", {1, 1}, {1}}}),
              HasSubstr("attention_mask is [1, 1], expected the shape of input_ids, [1, 2]"));
  EXPECT_THAT(ErrorOf({ids, {"token_type_ids", {2, 1}, {0, int64_t{1} << 31}}}),
              HasSubstr("token_type_ids[1, 0] is 2147483648"));
  EXPECT_THAT(ErrorOf({ids}, DType::kF64),
              HasSubstr("in.safetensors: tensor \"input_ids\" is F64"));
}

}  // namespace
}  // namespace hippodrome::encoder_input_test
