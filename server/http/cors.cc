#include "server/http/cors.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"

namespace hippodrome {
namespace {

// What pages may read beside the headers that they always may.
constexpr char kExposed[] =
    "Retry-After, WWW-Authenticate, x-compute-type, x-compute-characters, x-generated-tokens, "
    "x-prompt-tokens, "
    "x-time-per-token, x-total-time, x-request-id, traceparent";
constexpr char kPreflightSeconds[] = "600";
constexpr size_t kMostRequestedBytes = 1024;

using Headers = std::vector<std::pair<std::string, std::string>>;

const std::string* FindHeader(const HttpRequest& request, const char* name) {
  const auto it = request.headers.find(name);
  return it == request.headers.end() ? nullptr : &it->second;
}

void Append(const Headers& headers, HttpResponse& response) {
  response.headers.insert(response.headers.end(), headers.begin(), headers.end());
}

// A list of header names, as it is sent back.
bool IsNameList(const std::string& text) {
  return text.size() <= kMostRequestedBytes && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ||
                  c == ',' || c == ' ';
         });
}

void AddPreflight(const HttpRequest& request, HttpResponse& response) {
  const auto allow = std::find_if(response.headers.begin(), response.headers.end(),
                                  [](const auto& header) { return header.first == "Allow"; });
  if (allow != response.headers.end()) {
    std::string methods = allow->second;
    response.headers.emplace_back("Access-Control-Allow-Methods", std::move(methods));
  }
  const std::string* names = FindHeader(request, "access-control-request-headers");
  if (names != nullptr && IsNameList(*names)) {
    response.headers.emplace_back("Access-Control-Allow-Headers", *names);
  }
  response.headers.emplace_back("Access-Control-Max-Age", kPreflightSeconds);
}

// Work whose response, which it may replace until it is done, gets headers in the end.
class WorkWithHeaders : public HttpWork {
 public:
  WorkWithHeaders(std::unique_ptr<HttpWork> work, Headers headers)
      : work_(std::move(work)), headers_(std::move(headers)) {}

  void OnUpdate(std::function<void()> wake) override { work_->OnUpdate(std::move(wake)); }
  bool Advance(HttpResponse& response) override {
    const bool done = work_->Advance(response);
    if (done) Append(headers_, response);
    return done;
  }

 private:
  const std::unique_ptr<HttpWork> work_;
  const Headers headers_;
};

}  // namespace

bool IsPreflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && FindHeader(request, "origin") != nullptr &&
         FindHeader(request, "access-control-request-method") != nullptr;
}

Cors::Cors(std::vector<std::string> origins)
    : origins_(std::move(origins)),
      any_(std::find(origins_.begin(), origins_.end(), "*") != origins_.end()) {}

bool Cors::Allows(const HttpRequest& request) const {
  const std::string* origin = FindHeader(request, "origin");
  return origin != nullptr &&
         (any_ || std::find(origins_.begin(), origins_.end(), *origin) != origins_.end());
}

HttpReply Cors::Allow(const HttpRequest& request, HttpReply reply) const {
  if (origins_.empty()) return reply;
  Headers headers;
  // Caches must not give one origin what another one got.
  if (!any_) headers.emplace_back("Vary", "Origin");
  if (Allows(request)) {
    headers.emplace_back("Access-Control-Allow-Origin",
                         any_ ? "*" : *FindHeader(request, "origin"));
    headers.emplace_back("Access-Control-Expose-Headers", kExposed);
    if (IsPreflight(request)) AddPreflight(request, reply.response);
  }
  if (reply.work == nullptr || reply.streamed) {
    Append(headers, reply.response);
  } else {
    reply.work = std::make_unique<WorkWithHeaders>(std::move(reply.work), std::move(headers));
  }
  return reply;
}

}  // namespace hippodrome
