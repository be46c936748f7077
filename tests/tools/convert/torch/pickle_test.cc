#include "tools/convert/torch/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "tests/tools/convert/torch_builder.h"
#include "tools/convert/byte_order.h"

namespace hippodrome::pickle_test {
namespace {

using Kind = PickleNode::Kind;
using testing::HasSubstr;

absl::StatusOr<Pickle> Parse(const std::string& bytes) {
  return ParsePickle(std::as_bytes(std::span(bytes)));
}

std::string Error(const std::string& bytes) {
  const auto pickle = Parse(bytes);
  return pickle.ok() ? "OK" : Message(pickle.status());
}

Kind RootKind(const std::string& value) {
  const auto pickle = Parse(value + ".");
  EXPECT_TRUE(pickle.ok()) << Message(pickle.status());
  return pickle.ok() ? (*pickle)[pickle->root].kind : Kind::kNone;
}

int64_t RootInteger(const std::string& value) {
  const auto pickle = Parse(value + ".");
  EXPECT_TRUE(pickle.ok()) << Message(pickle.status());
  return pickle.ok() ? (*pickle)[pickle->root].integer : -999;
}

TEST(PickleTest, ReadsIntegersOfEveryForm) {
  EXPECT_EQ(RootInteger("K\xff"), 255);
  EXPECT_EQ(RootInteger("M\x01\x02"), 513);
  EXPECT_EQ(RootInteger("J\xff\xff\xff\xff"), -1);
  EXPECT_EQ(RootInteger("I-42\n"), -42);
}

TEST(PickleTest, ReadsLongsAsTwosComplement) {
  EXPECT_EQ(RootInteger(std::string("\x8a\x00", 2)), 0);
  EXPECT_EQ(RootInteger(std::string("\x8a\x02\xff\x00", 4)), 255);
  EXPECT_EQ(RootInteger(std::string("\x8b\x01\x00\x00\x00\xfe", 6)), -2);
  EXPECT_EQ(RootInteger(pickled::Integer(INT64_MIN)), INT64_MIN);
  EXPECT_EQ(RootKind("\x8a\x09" + std::string(9, '\x7f')), Kind::kOther);
}

TEST(PickleTest, ReadsContainersOfEveryForm) {
  EXPECT_EQ(RootKind("]K\1a"), Kind::kList);
  EXPECT_EQ(RootKind("](K\1K\2e"), Kind::kList);
  EXPECT_EQ(RootKind("(K\1l"), Kind::kList);
  EXPECT_EQ(RootKind("(K\1K\2d"), Kind::kDict);
  EXPECT_EQ(RootKind("}K\1K\2s"), Kind::kDict);
  EXPECT_EQ(RootKind("K\1\x85"), Kind::kTuple);
  EXPECT_EQ(RootKind("\x8f(K\1\x90"), Kind::kOther);
  EXPECT_EQ(RootKind("(K\1\x91"), Kind::kOther);
}

TEST(PickleTest, ReadsTextOfEveryForm) {
  const std::string forms[] = {"X" + LittleEndian(2, 4) + "ab",
                               "\x8c\x02"
                               "ab",
                               "\x8d" + LittleEndian(2, 8) + "ab",
                               "U\x02"
                               "ab",
                               "T" + LittleEndian(2, 4) + "ab",
                               "Vab\n"};
  for (const std::string& form : forms) {
    const std::string bytes = form + ".";
    const auto pickle = Parse(bytes);
    ASSERT_TRUE(pickle.ok()) << Message(pickle.status());
    EXPECT_EQ((*pickle)[pickle->root].text, "ab");
  }
}

TEST(PickleTest, UnknownCallsBecomeObjects) {
  EXPECT_EQ(RootKind("cmy.module\nThing\n(K\1tR"), Kind::kObject);
  EXPECT_EQ(RootKind("cmy.module\nThing\n)\x81}b"), Kind::kObject);
  EXPECT_EQ(RootKind("cmy.module\nThing\n)}\x92"), Kind::kObject);
  EXPECT_EQ(RootKind("(K\1imy.module\nThing\n"), Kind::kObject);
  EXPECT_EQ(RootKind("(cmy.module\nThing\nK\1o"), Kind::kObject);
  EXPECT_EQ(RootKind("\x8c\2my\x8c\5Thing\x93"), Kind::kGlobal);
}

TEST(PickleTest, MemoRecallsValues) {
  EXPECT_EQ(RootInteger("K\7q\3"
                        "0h\3"),
            7);
  EXPECT_EQ(RootInteger("K\7r\3\1\1\1"
                        "0j\3\1\1\1"),
            7);
  EXPECT_EQ(RootInteger("K\7p12\n0g12\n"), 7);
  EXPECT_EQ(RootInteger("K\7\x94"
                        "0h" +
                        std::string(1, '\0')),
            7);
  EXPECT_THAT(Error("h\5."), HasSubstr("never stored"));
}

TEST(PickleTest, RefusesDangerousGlobalsWithTheirNames) {
  EXPECT_THAT(Error("cos\nsystem\n(Vtrue\ntR."), HasSubstr("os.system"));
  EXPECT_THAT(Error("cposix\nsystem\n."), HasSubstr("posix.system"));
  EXPECT_THAT(Error("cbuiltins\neval\n."), HasSubstr("builtins.eval"));
  EXPECT_THAT(Error("c__builtin__\nexec\n."), HasSubstr("__builtin__.exec"));
  EXPECT_THAT(Error("\x8c\nsubprocess\x8c\5Popen\x93."), HasSubstr("subprocess.Popen"));
  EXPECT_THAT(Error("(Vx\nios\nsystem\n."), HasSubstr("os.system"));
  EXPECT_THAT(Error("cos.path\njoin\n."), HasSubstr("os.path.join"));
  EXPECT_EQ(Error("cbuiltins\nset\n."), "OK");
}

TEST(PickleTest, RefusesMalformedStacks) {
  EXPECT_THAT(Error("."), HasSubstr("empty stack"));
  EXPECT_THAT(Error("R."), HasSubstr("empty stack"));
  EXPECT_THAT(Error("K\1(a."), HasSubstr("empty stack"));
  EXPECT_THAT(Error("t."), HasSubstr("mark is missing"));
  EXPECT_THAT(Error("}(K\1u."), HasSubstr("key without a value"));
  EXPECT_THAT(Error("K\1K\2a."), HasSubstr("puts items into the integer 1"));
  EXPECT_THAT(Error("(o."), HasSubstr("object without a class"));
  EXPECT_THAT(Error("K\1K\2\x93."), HasSubstr("not a string"));
}

TEST(PickleTest, RefusesTruncationAndBadOperands) {
  EXPECT_THAT(Error(""), HasSubstr("only 0 are left"));
  EXPECT_THAT(Error("X\xff\xff\xff\x7f"
                    "ab."),
              HasSubstr("needs 2147483647 more bytes"));
  EXPECT_THAT(Error("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"
                    "ab."),
              HasSubstr("more bytes"));
  EXPECT_THAT(Error("cno end"), HasSubstr("line without an end"));
  EXPECT_THAT(Error("I12x\n."), HasSubstr("malformed decimal"));
  EXPECT_THAT(Error("g-1\n."), HasSubstr("negative index"));
  EXPECT_THAT(Error("\x80\x06."), HasSubstr("protocol 6"));
  EXPECT_THAT(Error("\x82\x01."), HasSubstr("opcode 130"));
  EXPECT_THAT(Error("Ppid\n."), HasSubstr("opcode 80"));
}

TEST(PickleTest, ErrorsTellThePosition) { EXPECT_THAT(Error("K\1K\2t."), HasSubstr("byte 5")); }

TEST(PickleTest, CyclesAndDeepNestingNeedNoStack) {
  EXPECT_EQ(Error(std::string("]q\0h\0a.", 7)), "OK");
  const std::string deep = std::string(1'000'000, '(') + std::string(1'000'000, 't') + ".";
  EXPECT_EQ(Error(deep), "OK");
  EXPECT_EQ(Error(")" + std::string(1'000'000, '\x85') + "."), "OK");
}

TEST(PickleTest, BoundsValuesMarksAndMemo) {
  EXPECT_THAT(Error(std::string(kMaxPickleNodes + 1, ')')), HasSubstr("more than"));
  EXPECT_THAT(Error(")" + std::string(kMaxPickleNodes + 1, '2')), HasSubstr("on the stack"));
  EXPECT_THAT(Error(std::string(kMaxPickleNodes + 1, '(')), HasSubstr("open marks"));
  EXPECT_THAT(Error(")" + std::string(kMaxPickleNodes + 1, '\x94')), HasSubstr("remembered"));
}

}  // namespace
}  // namespace hippodrome::pickle_test
