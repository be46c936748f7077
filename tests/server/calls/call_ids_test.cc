#include "server/calls/call_ids.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hippodrome::call_ids_test {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kSpan = "00f067aa0ba902b7";

std::string Traced(const std::string& traceparent) { return NewCallIds("", traceparent).trace_id; }

TEST(CallIds, ARequestIdIsTakenOverWhereItIsPlain) {
  const std::string all = "azAZ09.:_-";
  EXPECT_EQ(NewCallIds(all, "").request_id, all);
  const std::string longest(128, 'x');
  EXPECT_EQ(NewCallIds(longest, "").request_id, longest);
}

TEST(CallIds, OtherRequestIdsAreReplaced) {
  for (const std::string& bad :
       {std::string(), std::string(129, 'x'), std::string("a b"), std::string("a\r\nx"),
        std::string("\x1b[31m"), std::string("a\0b", 3), std::string("\xc3\xa9")}) {
    const std::string made = NewCallIds(bad, "").request_id;
    EXPECT_EQ(made.size(), 32U) << bad;
    EXPECT_EQ(made.find_first_not_of("0123456789abcdef"), std::string::npos) << made;
  }
}

TEST(CallIds, MadeIdsDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const CallIds ids = NewCallIds("", "");
    seen.insert({ids.request_id, ids.trace_id, ids.span_id});
  }
  EXPECT_EQ(seen.size(), 3000U);
}

TEST(CallIds, ATraceGoesOnWithASpanOfItsOwn) {
  const CallIds ids = NewCallIds("", "00-" + kTrace + "-" + kSpan + "-01");
  EXPECT_EQ(ids.trace_id, kTrace);
  EXPECT_NE(ids.span_id, kSpan);
  EXPECT_EQ(ids.span_id.size(), 16U);
  EXPECT_TRUE(ids.sampled);
  EXPECT_EQ(ids.Traceparent(), "00-" + kTrace + "-" + ids.span_id + "-01");
}

TEST(CallIds, OfTheFlagsOnlySampledIsKnown) {
  EXPECT_FALSE(NewCallIds("", "00-" + kTrace + "-" + kSpan + "-02").sampled);
  EXPECT_TRUE(NewCallIds("", "00-" + kTrace + "-" + kSpan + "-ff").sampled);
}

TEST(CallIds, LaterVersionsMayHaveMore) {
  EXPECT_EQ(Traced("01-" + kTrace + "-" + kSpan + "-00"), kTrace);
  EXPECT_EQ(Traced("cc-" + kTrace + "-" + kSpan + "-00-what.else"), kTrace);
  EXPECT_NE(Traced("cc-" + kTrace + "-" + kSpan + "-00.what.else"), kTrace);
}

TEST(CallIds, ABrokenTraceparentBeginsATrace) {
  const std::string upper = "4BF92F3577B34DA6A3CE929D0E0E4736";
  for (const std::string& bad :
       {std::string(), "00-" + kTrace + "-" + kSpan, "00-" + kTrace + "-" + kSpan + "-0",
        "00-" + kTrace + "-" + kSpan + "-011", "00-" + kTrace + "-" + kSpan + "-01-x",
        "ff-" + kTrace + "-" + kSpan + "-01", "0-" + kTrace + "-" + kSpan + "-011",
        "00-" + kTrace + "_" + kSpan + "-01", "00-" + kTrace + "-" + kSpan + "-0g",
        "00-" + kTrace + "-0000000000000000-01", " 00-" + kTrace + "-" + kSpan + "-01"}) {
    const std::string made = Traced(bad);
    EXPECT_EQ(made.size(), 32U) << bad;
    EXPECT_NE(made, kTrace) << bad;
  }
  const std::string none(32, '0');
  EXPECT_NE(Traced("00-" + none + "-" + kSpan + "-01"), none);
  EXPECT_NE(Traced("00-" + upper + "-" + kSpan + "-01"), upper);
}

}  // namespace
}  // namespace hippodrome::call_ids_test
