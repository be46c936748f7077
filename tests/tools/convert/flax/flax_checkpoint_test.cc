// Flax files: well-formed, damaged and hostile ones.
#include "tools/convert/flax/flax_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "tests/tools/convert/bigs_files.h"
#include "tests/tools/convert/msgpack_builder.h"
#include "tests/tools/convert/torch_builder.h"
#include "tools/convert/byte_order.h"

namespace hippodrome::flax_checkpoint_test {
namespace {

using msgpack::Array;
using msgpack::Binary;
using msgpack::Extension;
using msgpack::FlaxArray;
using msgpack::Integer;
using msgpack::Map;
using msgpack::Text;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string FlaxError(const std::string& bytes) {
  const auto source = OpenFlaxCheckpoint(WriteTemporary("model.msgpack", bytes));
  return source.ok() ? "OK" : Message(source.status());
}

// A map of one entry.
std::string One(const std::string& value) { return Map({Text("a"), value}); }

TEST(FlaxCheckpointTest, ReadsArraysOfEveryFloat) {
  const std::string file = Map({
      Text("a"),
      Map({Text("f32"), FlaxArray({2, 2}, "float32", Bytes({1, 2, 3, 4})), Text("f16"),
           FlaxArray({1}, "float16", LittleEndian(0x3e00, 2))}),
      Text("bf16"),
      FlaxArray({1}, "bfloat16", LittleEndian(0x3fc0, 2)),
      Text("f64"),
      FlaxArray({}, "float64", LittleEndian(0x3ff8000000000000, 8)),
      Text("ids"),
      FlaxArray({1}, "int32", LittleEndian(7, 4)),
      Text("none"),
      FlaxArray({0, 3}, "float32", ""),
  });
  // Known by its content as well as by its name.
  for (const char* name : {"model.msgpack", "model.bin"}) {
    const auto source = OpenCheckpoint(WriteTemporary(name, file));
    ASSERT_TRUE(source.ok()) << Message(source.status());
    const std::vector<SourceTensor>& tensors = (*source)->tensors();
    ASSERT_EQ(tensors.size(), 6);
    EXPECT_TRUE((*source)->flax());
    EXPECT_EQ((*source)->file_bytes(), file.size());
    EXPECT_EQ(tensors[0].name, "a/f32");
    EXPECT_THAT(tensors[0].shape, ElementsAre(2, 2));
    EXPECT_THAT(ReadAll(**source, 0), ElementsAre(1, 2, 3, 4));
    float third = 0;
    ASSERT_TRUE((*source)->Read(0, 2, std::span(&third, 1)).ok());
    EXPECT_EQ(third, 3);
    for (const size_t i : {1, 2, 3}) EXPECT_THAT(ReadAll(**source, i), ElementsAre(1.5F));
    EXPECT_EQ(tensors[3].elements, 1);
    EXPECT_EQ(tensors[4].type, "int32");
    EXPECT_FALSE(tensors[4].is_float);
    EXPECT_EQ(tensors[5].elements, 0);
  }
}

TEST(FlaxCheckpointTest, ReadsEveryFormOfSizesAndIntegers) {
  const std::string payload = Array({Array({"\xcc\x02"}), Text("float32"), Binary(Bytes({1, 2}))});
  const std::string array = "\xc9" + BigEndian(payload.size(), 4) + "\x01" + payload;
  const std::string key32 = "\xdb" + BigEndian(1, 4) + "b";
  const std::string map32 = "\xdf" + BigEndian(2, 4) + Text("a") + array + key32 + array;
  const auto source = OpenFlaxCheckpoint(WriteTemporary("model.msgpack", map32));
  ASSERT_TRUE(source.ok()) << Message(source.status());
  EXPECT_EQ((*source)->tensors()[1].name, "b");
  EXPECT_THAT(ReadAll(**source, 1), ElementsAre(1, 2));
}

TEST(FlaxCheckpointTest, EveryTruncationIsRefused) {
  const std::string file = BigsFlaxFile(RandomBigs(SmallBigs()));
  ASSERT_EQ(FlaxError(file), "OK");
  for (size_t size = 0; size < file.size(); size += size < 2000 ? 1 : 101) {
    ASSERT_NE(FlaxError(file.substr(0, size)), "OK") << size;
  }
}

TEST(FlaxCheckpointTest, RefusesSizesBeyondTheFile) {
  const std::string huge = BigEndian(0xffffffff, 4);
  EXPECT_THAT(FlaxError("\xdf" + huge), HasSubstr("a map of size 4294967295 at byte 5, where 0"));
  EXPECT_THAT(FlaxError(One("\xdf" + huge)), HasSubstr("a map of size 4294967295"));
  EXPECT_THAT(FlaxError("\x81\xdb" + huge), HasSubstr("a string of size 4294967295"));
  EXPECT_THAT(FlaxError(One("\xc9" + huge + "\x01")), HasSubstr("an extension of size 4294967295"));
  EXPECT_THAT(FlaxError(One(Extension(1, "\xdd" + huge))), HasSubstr("an array of size"));
  EXPECT_THAT(FlaxError(One(Extension(1, Array({Array({}), Text("float32"), "\xc6" + huge})))),
              HasSubstr("binary data of size 4294967295"));
}

TEST(FlaxCheckpointTest, RefusesDeepNesting) {
  std::string tree = Integer(0);
  for (int i = 0; i < 100000; ++i) tree = "\x81\xa1x" + tree;
  EXPECT_THAT(FlaxError(tree), HasSubstr("lies deeper than 32 levels"));
}

TEST(FlaxCheckpointTest, RefusesLongNamesAndManyKeys) {
  const std::string name(300, 'n');
  EXPECT_THAT(FlaxError(Map({Text(name), Map({Text(name), Map({})})})),
              HasSubstr("is longer than 512 bytes"));
  std::string many;
  for (int i = 0; i < 70000; ++i) many += Text(std::to_string(i)) + Map({});
  EXPECT_THAT(FlaxError("\xdf" + BigEndian(70000, 4) + many), HasSubstr("more than 65536 keys"));
}

TEST(FlaxCheckpointTest, RefusesWhatIsNoTreeOfArrays) {
  EXPECT_THAT(FlaxError(""), HasSubstr("truncated"));
  EXPECT_THAT(FlaxError(Array({})), HasSubstr("the file is an array at byte 0; expected a map"));
  EXPECT_THAT(FlaxError("\xc1"), HasSubstr("byte 0 is 0xc1"));
  EXPECT_THAT(FlaxError(Map({Integer(3), Map({})})),
              HasSubstr("a key in '' is an integer at byte 1; expected a string"));
  EXPECT_THAT(FlaxError(One(Integer(3))), HasSubstr("'a' is an integer; expected a map or"));
  EXPECT_THAT(FlaxError(One("\xc0")), HasSubstr("'a' is nil"));
  EXPECT_THAT(FlaxError(One("\xc3")), HasSubstr("'a' is a boolean"));
  EXPECT_THAT(FlaxError(One("\xcb" + BigEndian(0, 8))), HasSubstr("'a' is a float"));
  EXPECT_THAT(FlaxError(One(Array({}))), HasSubstr("'a' is an array"));
  EXPECT_THAT(FlaxError(One(Extension(3, "x"))), HasSubstr("'a' is an extension of type 3"));
  EXPECT_THAT(FlaxError(Map({}) + "x"), HasSubstr("the tree ends at byte 1; expected the end"));
}

TEST(FlaxCheckpointTest, RefusesDuplicateKeys) {
  const std::string array = FlaxArray({1}, "float32", Bytes({1}));
  EXPECT_THAT(FlaxError(Map({Text("x"), Map({Text("y"), array, Text("y"), array})})),
              HasSubstr("'x/y' is there twice"));
}

TEST(FlaxCheckpointTest, RefusesChunkedArrays) {
  const std::string chunked = Map({Text("__msgpack_chunked_array__"), "\xc3"});
  EXPECT_THAT(FlaxError(Map({Text("big"), chunked})), HasSubstr("'big/' is an array in chunks"));
}

TEST(FlaxCheckpointTest, RefusesMalformedArrays) {
  const auto error = [](const std::string& payload) {
    return FlaxError(One(Extension(1, payload)));
  };
  const std::string f32 = Text("float32");
  const std::string one = Binary(Bytes({1}));
  EXPECT_THAT(error(Map({})), HasSubstr("array 'a' is a map at byte 5; expected an array"));
  EXPECT_THAT(error(Array({f32, one})), HasSubstr("array 'a' has 2 parts; expected shape, type"));
  EXPECT_THAT(error(Array({one, f32, one})), HasSubstr("the shape of array 'a' is binary data"));
  EXPECT_THAT(error(Array({Array({f32}), f32, one})),
              HasSubstr("a dimension of array 'a' is a st"));
  EXPECT_THAT(error(Array({Array({Integer(-1)}), f32, one})), HasSubstr("a dimension of -1"));
  EXPECT_THAT(error(Array({Array({Integer(int64_t{1} << 62)}), f32, one})),
              HasSubstr("a dimension of 4611686018427387904"));
  EXPECT_THAT(error(Array({Array({"\xcf" + BigEndian(~uint64_t{0}, 8)}), f32, one})),
              HasSubstr("integer 18446744073709551615"));
  EXPECT_THAT(error(Array({Array(std::vector<std::string>(17, Integer(1))), f32, one})),
              HasSubstr("array 'a' has 17 dimensions"));
  EXPECT_THAT(error(Array({Array(std::vector<std::string>(16, Integer(30))), f32, one})),
              AllOf(HasSubstr("array 'a' has shape"), HasSubstr("which is too large")));
  EXPECT_THAT(error(Array({Array({}), Integer(4), one})), HasSubstr("the type of array 'a' is an"));
  EXPECT_THAT(error(Array({Array({}), Text(std::string(40, 'f')), one})),
              HasSubstr("the name of the type of array 'a' has 40 bytes"));
  EXPECT_THAT(error(Array({Array({}), f32, Text("1234")})),
              HasSubstr("the data of array 'a' is a string"));
  EXPECT_THAT(error(Array({Array({Integer(2)}), f32, one})),
              HasSubstr("array 'a' has 4 bytes; expected shape [2] of float32"));
  EXPECT_THAT(error(Array({Array({}), f32, Binary("123")})), HasSubstr("array 'a' has 3 bytes"));
  EXPECT_THAT(error(Array({Array({}), f32, one}) + "x"), HasSubstr("array 'a' ends at byte"));
}

TEST(FlaxCheckpointTest, RefusesAnArrayThatEndsBehindItsExtension) {
  const std::string payload = Array({Array({}), Text("float32"), Binary(Bytes({1}))});
  const std::string short_by_one = "\xc7" + BigEndian(payload.size() - 1, 1) + "\x01" + payload;
  EXPECT_THAT(FlaxError(One(short_by_one)), HasSubstr("array 'a' ends at byte"));
}

}  // namespace
}  // namespace hippodrome::flax_checkpoint_test
