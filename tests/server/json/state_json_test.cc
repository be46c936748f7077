#include "server/json/state_json.h"

#include <gtest/gtest.h>

#include <string>

namespace hippodrome::state_json_test {
namespace {

const std::string kHandle = "0123456789abcdef0123456789abcdef";

TEST(StateJsonTest, AStateIsAHandleOrAFile) {
  EXPECT_EQ(StateFromText(kHandle).value(), kHandle);
  EXPECT_EQ(StateFromText("AAEC").value(), std::string("\0\1\2", 3));
  // In capitals it is no handle, but three bytes for each four letters.
  EXPECT_EQ(StateFromText("0123456789ABCDEF0123456789ABCDEF").value().size(), 24);
  for (const char* wrong : {"", "!", "abc=d", "0123456789abcdef0123456789abcdef0"}) {
    EXPECT_FALSE(StateFromText(wrong).ok()) << wrong;
  }
}

TEST(StateJsonTest, WhatIsNotKnownIsNull) {
  v1::State state;
  state.set_position(7);
  state.set_bytes(100);
  EXPECT_EQ(StateBody(state),
            R"({"handle":null,"position":7,"bytes":100,"exact":false,"expires_at":null})");
  state.set_handle(kHandle);
  state.set_exact(true);
  state.set_expires_at(5);
  state.set_data("\1");
  EXPECT_EQ(StateBody(state), R"({"handle":")" + kHandle +
                                  R"(","position":7,"bytes":100,"exact":true,"expires_at":5,)"
                                  R"("data":"AQ=="})");
}

TEST(StateJsonTest, AForkMayHaveNoBody) {
  EXPECT_FALSE(ParseFork("").value().has_n());
  EXPECT_FALSE(ParseFork("{}").value().has_n());
  EXPECT_EQ(ParseFork(R"({"n": 3})").value().n(), 3);
  for (const char* wrong : {"[]", R"({"n": "3"})", R"({"m": 3})", "x"}) {
    EXPECT_FALSE(ParseFork(wrong).ok()) << wrong;
  }
}

TEST(StateJsonTest, Lists) {
  v1::ListStatesResponse states;
  EXPECT_EQ(StatesBody(states), R"({"object":"list","data":[]})");
  states.add_states()->set_handle("h");
  EXPECT_EQ(StatesBody(states),
            R"({"object":"list","data":[{"handle":"h","bytes":0,"expires_at":null}]})");
  v1::ForkStateResponse fork;
  fork.add_handles("h");
  EXPECT_EQ(ForkBody(fork), R"({"handles":["h"]})");
}

}  // namespace
}  // namespace hippodrome::state_json_test
