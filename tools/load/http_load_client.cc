#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tools/client/client_connection.h"
#include "tools/client/event_stream.h"
#include "tools/load/load_client.h"

namespace hippodrome {
namespace {

using nlohmann::json;

// Of an error's body, for the report.
constexpr size_t kMostMessage = 500;

std::string BodyOf(const LoadTarget& target, const LoadRequest& request) {
  json body = json::object();
  if (!target.model.empty()) body["model"] = target.model;
  if (target.task == LoadTask::kPredict) {
    body["inputs"] = request.text;
    return body.dump();
  }
  body["prompt"] = request.text.empty() ? json(request.token_ids) : json(request.text);
  body["max_tokens"] = request.max_tokens;
  body["temperature"] = 0;
  body["ignore_eos"] = true;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  return body.dump();
}

// How many tokens an event of a completion brings. It is not parsed: that would take this client
// several times as long as all else. Quotes within the text are escaped, so nothing in it looks so.
int64_t TokensOf(std::string_view event) {
  constexpr std::string_view kIds = "\"token_ids\":[";
  const size_t begin = event.find(kIds);
  if (begin == std::string_view::npos) return event.find("\"choices\":[{") != event.npos ? 1 : 0;
  int64_t tokens = event[begin + kIds.size()] == ']' ? 0 : 1;
  for (size_t i = begin + kIds.size(); i < event.size() && event[i] != ']'; ++i) {
    if (event[i] == ',') ++tokens;
  }
  return tokens;
}

// Reads a streamed completion into a record.
class CompletionReader {
 public:
  explicit CompletionReader(LoadRecord& record)
      : record_(record), events_([this](std::string_view event) { OnEvent(event); }) {}

  void Add(std::string_view piece) { sound_ = sound_ && events_.Add(piece); }

  // What the whole stream was.
  void Finish() {
    if (error_) {
      record_.outcome = LoadOutcome::kFailed;
      record_.code = "stream_error";
    } else if (!sound_ || !done_ || record_.new_tokens == 0) {
      record_.outcome = LoadOutcome::kFailed;
      record_.code = done_ ? "malformed" : "broken";
      record_.message = "a stream ended without " + std::string(done_ ? "usage" : "its last event");
    }
  }

 private:
  void OnEvent(std::string_view event) {
    if (event == "[DONE]") {
      done_ = true;
    } else if (event.starts_with("{\"error\"")) {
      error_ = true;
      record_.message = std::string(event.substr(0, kMostMessage));
    } else if (const int64_t tokens = TokensOf(event); tokens > 0) {
      record_.arrivals.push_back({LoadClock::now(), tokens});
    } else {
      ReadUsage(event);
    }
  }

  void ReadUsage(std::string_view event) {
    const json object = json::parse(event, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object() || !object.contains("usage") || !object["usage"].is_object()) return;
    const json& usage = object["usage"];
    const auto number = [&](const char* name) {
      return usage.contains(name) && usage[name].is_number_integer() ? usage[name].get<int64_t>()
                                                                     : 0;
    };
    record_.prompt_tokens = number("prompt_tokens");
    record_.new_tokens = number("completion_tokens");
  }

  LoadRecord& record_;
  EventStream events_;
  bool sound_ = true;
  bool done_ = false;
  bool error_ = false;
};

const char* CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return "connect";
    case absl::StatusCode::kUnauthenticated:
      return "tls";
    case absl::StatusCode::kDeadlineExceeded:
      return "timeout";
    case absl::StatusCode::kAborted:
      return "broken";
    default:
      return "malformed";
  }
}

class HttpLoadClient : public LoadClient {
 public:
  HttpLoadClient(boost::asio::io_context& context, LoadTarget target,
                 std::shared_ptr<HttpEndpoint> endpoint)
      : context_(context), target_(std::move(target)), endpoint_(std::move(endpoint)) {}

  void Send(const LoadRequest& request, LoadRecord& record, std::function<void()> done) override {
    ClientCall call;
    call.method = "POST";
    call.path = target_.task == LoadTask::kPredict ? "/predict" : "/v1/completions";
    call.body = BodyOf(target_, request);
    call.timeout = target_.timeout;
    boost::asio::co_spawn(context_, Run(std::move(call), record, std::move(done)),
                          boost::asio::detached);
  }

 private:
  boost::asio::awaitable<void> Run(ClientCall call, LoadRecord& record,
                                   std::function<void()> done) {
    const std::shared_ptr<ClientConnection> connection = TakeConnection();
    record.message.clear();
    CompletionReader reader(record);
    std::string body;
    const bool streamed = target_.task == LoadTask::kGenerate;
    call.on_body = [&](int status, std::string_view piece) {
      if (status == 200 && streamed) {
        reader.Add(piece);
      } else if (body.size() < kMostMessage) {
        body += piece.substr(0, kMostMessage - body.size());
      }
    };
    const absl::StatusOr<ClientAnswer> answer = co_await connection->Call(call);
    record.end = LoadClock::now();
    SetOutcome(answer, body, record);
    if (streamed && record.outcome == LoadOutcome::kAnswered) reader.Finish();
    if (answer.ok()) idle_.push_back(connection);
    done();
  }

  static void SetOutcome(const absl::StatusOr<ClientAnswer>& answer, const std::string& body,
                         LoadRecord& record) {
    record.retry_after = 0;
    record.outcome = LoadOutcome::kFailed;
    if (!answer.ok()) {
      record.code = CodeOf(answer.status());
      record.message = Message(answer.status());
      return;
    }
    record.code = std::to_string(answer->status);
    record.retry_after = answer->retry_after;
    if (answer->status != 200) record.message = body.substr(0, body.find('\n'));
    if (answer->status == 200) record.outcome = LoadOutcome::kAnswered;
    if (answer->status == 429 || answer->status == 503) record.outcome = LoadOutcome::kRefused;
  }

  // The one used last, which the server is the least likely to have closed.
  std::shared_ptr<ClientConnection> TakeConnection() {
    if (idle_.empty()) {
      return std::make_shared<ClientConnection>(context_.get_executor(), endpoint_);
    }
    std::shared_ptr<ClientConnection> connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  boost::asio::io_context& context_;
  const LoadTarget target_;
  const std::shared_ptr<HttpEndpoint> endpoint_;
  std::vector<std::shared_ptr<ClientConnection>> idle_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LoadClient>> MakeHttpLoadClient(boost::asio::io_context& context,
                                                               const LoadTarget& target) {
  HIPPODROME_ASSIGN_OR_RETURN(auto endpoint, HttpEndpoint::Make(target.address, target.security));
  return std::make_unique<HttpLoadClient>(context, target, std::move(endpoint));
}

}  // namespace hippodrome
