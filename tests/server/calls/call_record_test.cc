#include "server/calls/call_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "server/metrics/metrics.h"

namespace hippodrome::call_record_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class CallRecordTest : public testing::Test {
 protected:
  static std::string Requests(const std::string& api, const std::string& code,
                              const std::string& count) {
    return "hippodrome_requests_total{api=\"" + api + "\",code=\"" + code +
           "\",model=\"m\",route=\"/r\"} " + count + "\n";
  }
  static std::string Failures(const std::string& reason, const std::string& count) {
    return "hippodrome_request_failures_total{reason=\"" + reason + "\"} " + count + "\n";
  }

  Metrics metrics_;
};

TEST_F(CallRecordTest, ACallIsCountedOnce) {
  {
    CallRecord call(metrics_, Api::kHttp, "/r");
    call.set_model("m");
    call.Finish(200);
    call.Finish(500);
  }
  EXPECT_THAT(metrics_.Text(), HasSubstr(Requests("http", "200", "1")));
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("code=\"500\"")));
  EXPECT_THAT(metrics_.Text(), HasSubstr(Failures("internal", "0")));
}

TEST_F(CallRecordTest, StatusesHaveTheirReason) {
  for (const int status : {400, 401, 403, 404, 408, 413, 429, 499, 500, 501, 503, 504, 505}) {
    CallRecord(metrics_, Api::kHttp, "/r").Finish(status);
  }
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr(Failures("validation", "5")));
  EXPECT_THAT(text, HasSubstr(Failures("auth", "2")));
  EXPECT_THAT(text, HasSubstr(Failures("deadline", "2")));
  EXPECT_THAT(text, HasSubstr(Failures("overloaded", "2")));
  EXPECT_THAT(text, HasSubstr(Failures("cancelled", "1")));
  EXPECT_THAT(text, HasSubstr(Failures("internal", "1")));
}

TEST_F(CallRecordTest, GrpcHasCodesOfItsOwn) {
  CallRecord call(metrics_, Api::kGrpc, "/r");
  call.set_model("m");
  call.Finish(absl::DeadlineExceededError("late"));
  EXPECT_THAT(metrics_.Text(), HasSubstr(Requests("grpc", "deadline_exceeded", "1")));
  EXPECT_THAT(metrics_.Text(), HasSubstr(Failures("deadline", "1")));
}

TEST_F(CallRecordTest, WhoLeavesIsCountedToo) {
  {
    CallRecord call(metrics_, Api::kHttp, "/r");
  }
  {
    CallRecord call(metrics_, Api::kGrpc, "/r");
  }
  EXPECT_THAT(metrics_.Text(), HasSubstr("code=\"499\""));
  EXPECT_THAT(metrics_.Text(), HasSubstr("code=\"cancelled\""));
  EXPECT_THAT(metrics_.Text(), HasSubstr(Failures("cancelled", "2")));
}

TEST_F(CallRecordTest, WhatBreaksOffIsTheServersFault) {
  const auto broken = [&] {
    const CallRecord call(metrics_, Api::kHttp, "/r");
    throw std::runtime_error("no memory");
  };
  EXPECT_THROW(broken(), std::runtime_error);
  EXPECT_THAT(metrics_.Text(), HasSubstr("code=\"500\""));
  EXPECT_THAT(metrics_.Text(), HasSubstr(Failures("internal", "1")));
}

TEST_F(CallRecordTest, WhatWasDroppedIsNoCall) {
  CallRecord(metrics_, Api::kHttp, "/r").Drop();
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("hippodrome_requests_total{")));
}

TEST_F(CallRecordTest, ANoThatWasAskedForIsNoFailure) {
  CallRecord call(metrics_, Api::kHttp, "/r");
  call.set_probe(true);
  call.Finish(503);
  EXPECT_THAT(metrics_.Text(), HasSubstr("code=\"503\""));
  EXPECT_THAT(metrics_.Text(), HasSubstr(Failures("overloaded", "0")));
}

TEST_F(CallRecordTest, PartsOfAStreamHaveItsIds) {
  CallRecord stream(metrics_, Api::kGrpc, "/r");
  stream.Identify("mine", "");
  const auto part = stream.Part();
  EXPECT_EQ(part->ids().request_id, "mine");
  EXPECT_EQ(part->ids().span_id, stream.ids().span_id);
  part->Finish(absl::OkStatus());
  stream.Drop();
  EXPECT_THAT(metrics_.Text(), HasSubstr("code=\"ok\""));
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("code=\"cancelled\"")));
}

}  // namespace
}  // namespace hippodrome::call_record_test
