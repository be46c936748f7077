#include "server/grpc/encoding_service.h"

#include <grpcpp/grpcpp.h>

#include "hippodrome/v1/encoding.grpc.pb.h"
#include "server/grpc/courier.h"
#include "server/grpc/stream_reactor.h"
#include "server/grpc/unary_reactor.h"
#include "server/guarded.h"

namespace hippodrome {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerBidiReactor;
using grpc::ServerUnaryReactor;

class EncodingService : public v1::Encoding::CallbackService {
 public:
  EncodingService(EncodingHandlers& handlers, Metrics& metrics)
      : handlers_(handlers), metrics_(metrics) {}

  ServerUnaryReactor* Classify(CallbackServerContext*, const v1::ClassifyRequest* request,
                               v1::ClassifyResponse* response) override {
    return Unary("Classify", &EncodingHandlers::Classify, *request, response);
  }
  ServerUnaryReactor* TagTokens(CallbackServerContext*, const v1::TagTokensRequest* request,
                                v1::TagTokensResponse* response) override {
    return Unary("TagTokens", &EncodingHandlers::TagTokens, *request, response);
  }
  ServerUnaryReactor* FillMask(CallbackServerContext*, const v1::FillMaskRequest* request,
                               v1::FillMaskResponse* response) override {
    return Unary("FillMask", &EncodingHandlers::FillMask, *request, response);
  }
  ServerUnaryReactor* AnswerQuestion(CallbackServerContext*,
                                     const v1::AnswerQuestionRequest* request,
                                     v1::AnswerQuestionResponse* response) override {
    return Unary("AnswerQuestion", &EncodingHandlers::AnswerQuestion, *request, response);
  }
  ServerUnaryReactor* Embed(CallbackServerContext*, const v1::EmbedRequest* request,
                            v1::EmbedResponse* response) override {
    return Unary("Embed", &EncodingHandlers::Embed, *request, response);
  }

  ServerBidiReactor<v1::ClassifyRequest, v1::ClassifyResponse>* ClassifyStream(
      CallbackServerContext*) override {
    return Stream("ClassifyStream", &EncodingHandlers::Classify);
  }
  ServerBidiReactor<v1::TagTokensRequest, v1::TagTokensResponse>* TagTokensStream(
      CallbackServerContext*) override {
    return Stream("TagTokensStream", &EncodingHandlers::TagTokens);
  }
  ServerBidiReactor<v1::FillMaskRequest, v1::FillMaskResponse>* FillMaskStream(
      CallbackServerContext*) override {
    return Stream("FillMaskStream", &EncodingHandlers::FillMask);
  }
  ServerBidiReactor<v1::AnswerQuestionRequest, v1::AnswerQuestionResponse>* AnswerQuestionStream(
      CallbackServerContext*) override {
    return Stream("AnswerQuestionStream", &EncodingHandlers::AnswerQuestion);
  }
  ServerBidiReactor<v1::EmbedRequest, v1::EmbedResponse>* EmbedStream(
      CallbackServerContext*) override {
    return Stream("EmbedStream", &EncodingHandlers::Embed);
  }

 private:
  // One of the handlers.
  template <typename Request, typename Response>
  using Handler = Answer<Response> (EncodingHandlers::*)(const Request& request, Api api);

  // For the metrics: the model that answers, or "" where the call was refused.
  template <typename Response>
  static std::string ModelOf(const Answer<Response>& answer) {
    return answer.ok() ? (*answer)->model() : "";
  }

  template <typename Request, typename Response>
  ServerUnaryReactor* Unary(const char* route, Handler<Request, Response> handle,
                            const Request& request, Response* response) {
    Answer<Response> answer = Guarded([&] { return (handlers_.*handle)(request, Api::kGrpc); });
    std::string model = ModelOf(answer);
    return UnaryReactor<Response>::Start(std::move(answer), response, route, std::move(model),
                                         metrics_, courier_);
  }

  template <typename Request, typename Response>
  ServerBidiReactor<Request, Response>* Stream(const char* route,
                                               Handler<Request, Response> handle) {
    using Reactor = StreamReactor<Request, Response>;
    const auto begin = [&handlers = handlers_, handle](const Request& request) {
      Answer<Response> answer = Guarded([&] { return (handlers.*handle)(request, Api::kGrpc); });
      std::string model = ModelOf(answer);
      return typename Reactor::Call{std::move(model), std::move(answer)};
    };
    return Reactor::Start(begin, route, metrics_, courier_);
  }

  EncodingHandlers& handlers_;
  Metrics& metrics_;
  Courier courier_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewEncodingService(EncodingHandlers& handlers, Metrics& metrics) {
  return std::make_unique<EncodingService>(handlers, metrics);
}

}  // namespace hippodrome
