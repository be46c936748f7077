// What is accepted and refused inside the pickle of a checkpoint, through the zip container.
#include "tools/convert/torch/torch_state_dict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/base/status.h"
#include "tests/tools/convert/torch_builder.h"

namespace hippodrome::torch_state_dict_test {
namespace {

using pickled::Call;
using pickled::Dict;
using pickled::Global;
using pickled::Integer;
using pickled::Integers;
using pickled::Storage;
using pickled::Tensor;
using pickled::Text;
using pickled::Whole;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

const std::vector<StorageBytes>& SixFloats() {
  static const auto* const storages =
      new std::vector<StorageBytes>{{"0", Bytes({0, 1, 2, 3, 4, 5}), 6}};
  return *storages;
}

std::string FileOf(const std::string& value) { return ZipFile(Whole(value), SixFloats()); }
std::string FileWith(const std::string& tensor) { return FileOf(Dict({Text("w"), tensor})); }

std::string View(int64_t offset, const std::vector<int64_t>& shape,
                 const std::vector<int64_t>& strides) {
  return Tensor(Storage("FloatStorage", "0", 6), offset, shape, strides);
}

std::vector<float> ReadView(int64_t offset, const std::vector<int64_t>& shape,
                            const std::vector<int64_t>& strides) {
  const auto source = OpenBytes(FileWith(View(offset, shape, strides)));
  EXPECT_TRUE(source.ok()) << Message(source.status());
  return source.ok() ? ReadAll(**source, 0) : std::vector<float>();
}

TEST(TorchStateDictTest, ReadsStridedViews) {
  EXPECT_THAT(ReadView(0, {2, 3}, {3, 1}), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(ReadView(0, {3, 2}, {1, 3}), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(ReadView(1, {2, 2}, {3, 1}), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(ReadView(4, {2}, {1}), ElementsAre(4, 5));
  EXPECT_THAT(ReadView(5, {3}, {0}), ElementsAre(5, 5, 5));
  EXPECT_THAT(ReadView(2, {}, {}), ElementsAre(2));
  EXPECT_THAT(ReadView(2, {1, 2}, {1000, 1}), ElementsAre(2, 3));
}

TEST(TorchStateDictTest, ReadsPartsOfStridedViews) {
  const auto source = OpenBytes(FileWith(View(0, {3, 2}, {1, 3})));
  ASSERT_TRUE(source.ok());
  std::vector<float> part(3);
  ASSERT_TRUE((*source)->Read(0, 2, part).ok());
  EXPECT_THAT(part, ElementsAre(1, 4, 2));
}

TEST(TorchStateDictTest, RefusesViewsBeyondTheirStorage) {
  EXPECT_THAT(
      OpenError(FileWith(View(1, {2, 3}, {3, 1}))),
      HasSubstr("tensor 'w': shape [2, 3] with strides [3, 1] at offset 1 reaches element 6"));
  EXPECT_THAT(OpenError(FileWith(View(6, {1}, {1}))), HasSubstr("reaches element 6"));
  EXPECT_THAT(OpenError(FileWith(View(kMax, {2}, {kMax}))), HasSubstr("reaches element"));
  EXPECT_THAT(OpenError(FileWith(View(0, {2, 2, 2}, {kMax, kMax, kMax}))), HasSubstr("overflows"));
  EXPECT_THAT(OpenError(FileWith(View(0, {kMax, 4}, {kMax, 1}))), HasSubstr("overflows"));
  EXPECT_THAT(OpenError(FileWith(View(0, {kMax}, {0}))), HasSubstr("overflows"));
}

TEST(TorchStateDictTest, RefusesNegativeSizes) {
  EXPECT_THAT(OpenError(FileWith(View(-1, {1}, {1}))), HasSubstr("its offset is -1"));
  EXPECT_THAT(OpenError(FileWith(View(0, {-2}, {1}))), HasSubstr("its shape holds the integer -2"));
  EXPECT_THAT(OpenError(FileWith(View(5, {2}, {-1}))),
              HasSubstr("its strides holds the integer -1"));
  EXPECT_THAT(OpenError(FileWith(View(0, {2, 2}, {1}))), HasSubstr("2 dimensions and 1 strides"));
}

TEST(TorchStateDictTest, RefusesMalformedTensors) {
  const std::string rebuild = Global("torch._utils", "_rebuild_tensor_v2");
  EXPECT_THAT(OpenError(FileWith(Call(rebuild, {Integer(1)}))), HasSubstr("(storage, offset,"));
  EXPECT_THAT(OpenError(FileWith(Call(rebuild, {Storage("FloatStorage", "0", 6), Integer(0),
                                                Text("shape"), Integers({1})}))),
              HasSubstr("its shape is not a tuple"));
  EXPECT_THAT(OpenError(FileWith(Call(Global("torch._utils", "_rebuild_parameter"), {"N"}))),
              HasSubstr("a parameter without a tensor"));
  EXPECT_THAT(OpenError(FileWith(Tensor("(" + Text("storage") + "tQ", 0, {1}, {1}))),
              HasSubstr("malformed storage"));
  EXPECT_THAT(OpenError(FileWith(Tensor(Storage("QuantStorage", "0", 6), 0, {1}, {1}))),
              HasSubstr("torch.QuantStorage"));
  EXPECT_THAT(OpenError(FileWith(Tensor(Storage("FloatStorage", "0", -6), 0, {1}, {1}))),
              HasSubstr("of -6 elements"));
  EXPECT_THAT(OpenError(FileWith(Tensor(Storage("FloatStorage", "../0", 6), 0, {1}, {1}))),
              HasSubstr("storage key '../0'"));
}

TEST(TorchStateDictTest, RefusesStoragesThatTheFileLacks) {
  EXPECT_THAT(OpenError(FileWith(Tensor(Storage("FloatStorage", "7", 6), 0, {1}, {1}))),
              HasSubstr("storage '7' is missing"));
  EXPECT_THAT(OpenError(FileWith(Tensor(Storage("FloatStorage", "0", 7), 0, {1}, {1}))),
              HasSubstr("has 24 bytes in the file; expected 28"));
  EXPECT_THAT(OpenError(FileWith(Tensor(Storage("FloatStorage", "0", 5), 0, {1}, {1}))),
              HasSubstr("has 24 bytes in the file; expected 20"));
}

TEST(TorchStateDictTest, RefusesWhatIsNotAStateDict) {
  EXPECT_THAT(OpenError(FileOf(Call(Global("os", "system"), {Text("true")}))),
              HasSubstr("os.system"));
  EXPECT_THAT(OpenError(FileOf(Call(Global("my.models", "Net"), {}))),
              HasSubstr("an object made by my.models.Net"));
  EXPECT_THAT(OpenError(FileOf("K\1")), HasSubstr("the integer 1"));
  EXPECT_THAT(OpenError(FileWith(Call(Global("my.models", "Weight"), {}))),
              HasSubstr("entry 'w' is an object made by my.models.Weight; expected a tensor"));
  EXPECT_THAT(OpenError(FileWith("K\1")), HasSubstr("entry 'w' is the integer 1"));
  EXPECT_THAT(OpenError(FileOf(Dict({"K\1", View(0, {1}, {1})}))),
              HasSubstr("a name is the integer"));
  EXPECT_THAT(OpenError(FileOf(Dict({Text("w"), View(0, {1}, {1}), Text("w"), View(0, {1}, {1})}))),
              HasSubstr("'w' occurs twice"));
}

TEST(TorchStateDictTest, LooksIntoWrappers) {
  const std::string state = Dict({Text("w"), View(0, {1}, {1})});
  std::string wrapped = state;
  for (int i = 0; i < 8; ++i) wrapped = Dict({Text("model"), wrapped, Text("step"), "K\1"});
  const auto source = OpenBytes(FileOf(wrapped));
  ASSERT_TRUE(source.ok()) << Message(source.status());
  EXPECT_EQ((*source)->tensors().size(), 1u);
  EXPECT_THAT(OpenError(FileOf(Dict({Text("model"), wrapped}))),
              HasSubstr("lies in more than 8 dicts"));
  EXPECT_THAT(OpenError(FileOf(Dict({Text("model"), state, Text("state_dict"), state}))),
              HasSubstr("under 'state_dict' and under 'model'; expected one of them"));
  EXPECT_THAT(OpenError(FileOf(Dict({Text("model"), Call(Global("my.models", "Net"), {})}))),
              HasSubstr("entry 'model' is an object made by my.models.Net"));
}

std::string Lightning(const std::string& state, const std::string& side) {
  return FileOf(Dict({Text("pytorch-lightning_version"), Text("1.8.6"), Text("state_dict"), state,
                      Text("hyper_parameters"), side}));
}

TEST(TorchStateDictTest, LightningMayHoldUnknownObjectsBesideTheModel) {
  const std::string config = Call(Global("omegaconf.dictconfig", "DictConfig"), {"}"}) + "}b";
  const auto source = OpenBytes(Lightning(Dict({Text("model.w"), View(0, {1}, {1})}), config));
  ASSERT_TRUE(source.ok()) << Message(source.status());
  EXPECT_TRUE((*source)->lightning());
  EXPECT_EQ((*source)->tensors().size(), 1u);
}

TEST(TorchStateDictTest, LightningStateMustHoldTensors) {
  const std::string unknown = Call(Global("my.module", "Thing"), {});
  EXPECT_THAT(OpenError(Lightning(Dict({Text("other"), unknown}), "N")),
              HasSubstr("'other' is an object made by my.module.Thing"));
  EXPECT_THAT(OpenError(Lightning(Dict({Text("model.w"), "K\1"}), "N")),
              HasSubstr("'model.w' is the integer 1"));
  EXPECT_EQ(OpenError(Lightning(Dict({Text("counter"), "K\1"}), "N")), "OK");
  EXPECT_THAT(OpenError(Lightning(unknown, "N")), HasSubstr("made by my.module.Thing"));
  EXPECT_THAT(OpenError(Lightning(Dict({}), Call(Global("os", "system"), {Text("true")}))),
              HasSubstr("os.system"));
  EXPECT_THAT(OpenError(FileOf(Dict({Text("pytorch-lightning_version"), Text("1")}))),
              HasSubstr("'state_dict' is missing"));
}

TEST(TorchStateDictTest, AcceptsParametersPlainDictsAndPairs) {
  const std::string view = View(3, {2}, {1});
  const std::string parameter =
      Call(Global("torch._utils", "_rebuild_parameter"), {view, "\x88", "}"});
  const std::string pairs = Call(Global("collections", "OrderedDict"), {"](" + Text("w") + view +
                                                                        "\x86"
                                                                        "e"});
  for (const std::string& value : {Dict({Text("w"), parameter}), "}" + Text("w") + view + "s",
                                   Dict({Text("w"), view}) + "}b", pairs}) {
    const auto source = OpenBytes(FileOf(value));
    ASSERT_TRUE(source.ok()) << Message(source.status());
    EXPECT_THAT(ReadAll(**source, 0), ElementsAre(3, 4));
  }
  EXPECT_THAT(OpenError(FileOf(Call(Global("collections", "OrderedDict"), {"](" + Text("w") +
                                                                           "K\1\x86"
                                                                           "e"}))),
              HasSubstr("'w' is the integer 1"));
}

TEST(TorchStateDictTest, SharedStorageIsSeenAsTheSameView) {
  const auto source =
      OpenBytes(FileOf(Dict({Text("a"), View(0, {2, 3}, {3, 1}), Text("b"), View(0, {2, 3}, {3, 1}),
                             Text("c"), View(3, {3}, {1})})));
  ASSERT_TRUE(source.ok()) << Message(source.status());
  EXPECT_TRUE((*source)->Same(0, 1));
  EXPECT_FALSE((*source)->Same(0, 2));
  EXPECT_THAT(ReadAll(**source, 2), ElementsAre(3, 4, 5));
}

TEST(TorchStateDictTest, ConvertsEveryFloatType) {
  const std::vector<StorageBytes> storages = {
      {"h", std::string("\x00\x3c\x00\xc0", 4), 2},                  // 1, -2
      {"b", std::string("\x80\x3f\x00\xc0", 4), 2},                  // 1, -2
      {"d", std::string("\x00\x00\x00\x00\x00\x00\xf0\x3f", 8), 1},  // 1
      {"l", std::string(8, '\1'), 1}};
  const auto source = OpenBytes(
      ZipFile(Whole(Dict({Text("h"), Tensor(Storage("HalfStorage", "h", 2), 0, {2}, {1}), Text("b"),
                          Tensor(Storage("BFloat16Storage", "b", 2), 0, {2}, {1}), Text("d"),
                          Tensor(Storage("DoubleStorage", "d", 1), 0, {1}, {1}), Text("l"),
                          Tensor(Storage("LongStorage", "l", 1), 0, {}, {})})),
              storages));
  ASSERT_TRUE(source.ok()) << Message(source.status());
  EXPECT_THAT(ReadAll(**source, 0), ElementsAre(1, -2));
  EXPECT_THAT(ReadAll(**source, 1), ElementsAre(1, -2));
  EXPECT_THAT(ReadAll(**source, 2), ElementsAre(1));
  EXPECT_FALSE((*source)->tensors()[3].is_float);
}

}  // namespace
}  // namespace hippodrome::torch_state_dict_test
