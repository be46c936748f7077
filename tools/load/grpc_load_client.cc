#include <grpcpp/grpcpp.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <charconv>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "hippodrome/v1/encoding.grpc.pb.h"
#include "hippodrome/v1/generation.grpc.pb.h"
#include "server/address.h"
#include "tools/load/load_client.h"

namespace hippodrome {
namespace {

// A connection has a thread's worth of work, and servers bound the calls on one.
constexpr int64_t kCallsPerConnection = 128;
constexpr int64_t kMostConnections = 64;

std::string CodeName(grpc::StatusCode code) {
  constexpr const char* kNames[] = {"OK",
                                    "CANCELLED",
                                    "UNKNOWN",
                                    "INVALID_ARGUMENT",
                                    "DEADLINE_EXCEEDED",
                                    "NOT_FOUND",
                                    "ALREADY_EXISTS",
                                    "PERMISSION_DENIED",
                                    "RESOURCE_EXHAUSTED",
                                    "FAILED_PRECONDITION",
                                    "ABORTED",
                                    "OUT_OF_RANGE",
                                    "UNIMPLEMENTED",
                                    "INTERNAL",
                                    "UNAVAILABLE",
                                    "DATA_LOSS",
                                    "UNAUTHENTICATED"};
  const auto number = static_cast<size_t>(code);
  return number < std::size(kNames) ? kNames[number] : std::to_string(number);
}

int64_t RetryAfter(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find("retry-after");
  if (found == trailers.end()) return 0;
  int64_t seconds = 0;
  const grpc::string_ref text = found->second;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return seconds < 0 ? 0 : seconds > 3600 ? 3600 : seconds;
}

// What all calls have.
struct CallPart {
  CallPart(boost::asio::io_context& io, const LoadTarget& target, LoadRecord& into,
           std::function<void()> when_done)
      : loop(io), record(into), done(std::move(when_done)) {
    context.set_deadline(std::chrono::system_clock::now() + target.timeout);
    if (!target.security.api_key.empty()) {
      context.AddMetadata("authorization", "Bearer " + target.security.api_key);
    }
  }

  void SetEnd(const grpc::Status& status) {
    record.end = LoadClock::now();
    record.code = CodeName(status.error_code());
    record.message = status.error_message().substr(0, status.error_message().find('\n'));
    record.retry_after = RetryAfter(context);
    // A server that stops is unavailable too, but one that is gone says nothing.
    const bool refused = status.error_code() == grpc::RESOURCE_EXHAUSTED ||
                         (status.error_code() == grpc::UNAVAILABLE && record.retry_after > 0);
    record.outcome = status.ok() ? LoadOutcome::kAnswered
                     : refused   ? LoadOutcome::kRefused
                                 : LoadOutcome::kFailed;
  }

  boost::asio::io_context& loop;
  LoadRecord& record;
  std::function<void()> done;
  grpc::ClientContext context;
};

// Deletes a call that has ended, and says so only then: who hears of the last one may give up the
// channel, which must not have its last user on one of its own threads.
template <typename Call>
void End(Call* ended, CallPart& part) {
  boost::asio::io_context& loop = part.loop;
  std::function<void()> done = std::move(part.done);
  delete ended;
  boost::asio::post(loop, std::move(done));
}

// A stream of tokens; deletes itself.
class GenerateCall : public grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  GenerateCall(boost::asio::io_context& io, const LoadTarget& target, LoadRecord& record,
               std::function<void()> done)
      : call_(io, target, record, std::move(done)) {}

  void Start(v1::Generation::Stub& stub, const LoadTarget& target, const LoadRequest& request) {
    request_.set_model(target.model);
    if (request.text.empty()) {
      request_.mutable_token_ids()->mutable_ids()->Assign(request.token_ids.begin(),
                                                          request.token_ids.end());
    } else {
      request_.set_text(request.text);
    }
    request_.set_max_tokens(request.max_tokens);
    request_.set_temperature(0);
    request_.set_ignore_eos(true);
    stub.async()->Generate(&call_.context, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (response_.token_ids_size() > 0) {
      call_.record.arrivals.push_back({LoadClock::now(), response_.token_ids_size()});
    }
    if (response_.has_usage()) {
      call_.record.prompt_tokens = response_.usage().prompt_tokens();
      call_.record.new_tokens = response_.usage().completion_tokens();
    }
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    call_.SetEnd(status);
    if (status.ok() && call_.record.new_tokens == 0) {
      call_.record.outcome = LoadOutcome::kFailed;
      call_.record.code = "malformed";
      call_.record.message = "a stream ended without usage";
    }
    End(this, call_);
  }

 private:
  CallPart call_;
  v1::GenerateRequest request_;
  v1::GenerateResponse response_;
};

// Deleted when its answer has come.
struct ClassifyCall {
  ClassifyCall(boost::asio::io_context& io, const LoadTarget& target, LoadRecord& record,
               std::function<void()> done)
      : call(io, target, record, std::move(done)) {}

  CallPart call;
  v1::ClassifyRequest request;
  v1::ClassifyResponse response;
};

class GrpcLoadClient : public LoadClient {
 public:
  GrpcLoadClient(boost::asio::io_context& context, const LoadTarget& target)
      : context_(context), target_(target) {
    const std::shared_ptr<grpc::ChannelCredentials> credentials = Credentials();
    const int64_t connections =
        std::min(kMostConnections,
                 (target.most_outstanding + kCallsPerConnection - 1) / kCallsPerConnection);
    grpc::ChannelArguments arguments;
    // Otherwise channels to one address share a connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    for (int64_t i = 0; i < connections; ++i) {
      channels_.push_back(grpc::CreateCustomChannel(target.address, credentials, arguments));
      generation_.push_back(v1::Generation::NewStub(channels_.back()));
      encoding_.push_back(v1::Encoding::NewStub(channels_.back()));
    }
  }

  void Send(const LoadRequest& request, LoadRecord& record, std::function<void()> done) override {
    const size_t channel = next_++ % channels_.size();
    if (target_.task == LoadTask::kGenerate) {
      auto* call = new GenerateCall(context_, target_, record, std::move(done));
      call->Start(*generation_[channel], target_, request);
      return;
    }
    auto* call = new ClassifyCall(context_, target_, record, std::move(done));
    call->request.set_model(target_.model);
    call->request.add_inputs()->set_text(request.text);
    encoding_[channel]->async()->Classify(&call->call.context, &call->request, &call->response,
                                          [call](const grpc::Status& status) {
                                            call->call.SetEnd(status);
                                            End(call, call->call);
                                          });
  }

 private:
  std::shared_ptr<grpc::ChannelCredentials> Credentials() const {
    const ClientSecurity& security = target_.security;
    if (!security.tls()) return grpc::InsecureChannelCredentials();
    return grpc::SslCredentials({.pem_root_certs = security.authorities,
                                 .pem_private_key = security.private_key,
                                 .pem_cert_chain = security.certificate});
  }

  boost::asio::io_context& context_;
  const LoadTarget target_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<v1::Generation::Stub>> generation_;
  std::vector<std::unique_ptr<v1::Encoding::Stub>> encoding_;
  size_t next_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LoadClient>> MakeGrpcLoadClient(boost::asio::io_context& context,
                                                               const LoadTarget& target) {
  HIPPODROME_RETURN_IF_ERROR(ParseAddress(target.address).status());
  return std::make_unique<GrpcLoadClient>(context, target);
}

}  // namespace hippodrome
