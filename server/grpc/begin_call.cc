#include <iterator>
#include <string_view>

#include "server/grpc/grpc_services.h"

namespace hippodrome {
namespace {

std::string_view OnlyValue(const grpc::CallbackServerContext& context, const char* name) {
  const auto& metadata = context.client_metadata();
  const auto [first, end] = metadata.equal_range(name);
  if (first == end || std::next(first) != end) return {};
  return {first->second.data(), first->second.size()};
}

}  // namespace

std::optional<std::string> AuthorizationOf(const grpc::CallbackServerContext& context) {
  std::optional<std::string> joined;
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto field = begin; field != end; ++field) {
    joined = joined ? *joined + ", " : "";
    joined->append(field->second.data(), field->second.size());
  }
  return joined;
}

std::unique_ptr<CallRecord> BeginCall(grpc::CallbackServerContext& context, Metrics& metrics,
                                      const char* route) {
  auto call = std::make_unique<CallRecord>(metrics, Api::kGrpc, route);
  call->Identify(OnlyValue(context, kRequestIdHeader), OnlyValue(context, kTraceparentHeader));
  context.AddInitialMetadata(kRequestIdHeader, call->ids().request_id);
  context.AddInitialMetadata(kTraceparentHeader, call->ids().Traceparent());
  return call;
}

}  // namespace hippodrome
