#include "server/json/state_json.h"

#include "absl/strings/escaping.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/json/json_fields.h"
#include "server/states/state_store.h"

namespace hippodrome {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr RequestField kFork[] = {
    {"n", R"({"type": "integer", "minimum": 1, "maximum": 128, "default": 1})",
     "copies of the state, each under a handle of its own"},
};

OrderedJson KnownOrNull(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

OrderedJson TimeOrNull(int64_t seconds) {
  return seconds == 0 ? OrderedJson(nullptr) : OrderedJson(seconds);
}

}  // namespace

const RequestFields kForkFields = kFork;

absl::StatusOr<std::string> StateFromText(const std::string& text) {
  if (IsStateHandle(text)) return text;
  std::string file;
  if (absl::Base64Unescape(text, &file) && !file.empty()) return file;
  return FieldError("state", "expected a handle of 32 hexadecimal digits, or a file in base64");
}

absl::StatusOr<v1::ForkStateRequest> ParseFork(const std::string& body) {
  v1::ForkStateRequest request;
  if (body.empty()) return request;
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kFork));
  HIPPODROME_ASSIGN_OR_RETURN(const auto n, IntegerField(json, "n"));
  if (n) request.set_n(*n);
  return request;
}

OrderedJson StateJson(const v1::State& state) {
  OrderedJson json = {{"handle", KnownOrNull(state.handle())},
                      {"position", state.position()},
                      {"bytes", state.bytes()},
                      {"exact", state.exact()},
                      {"expires_at", TimeOrNull(state.expires_at())}};
  if (!state.data().empty()) json["data"] = absl::Base64Escape(state.data());
  return json;
}

std::string StateBody(const v1::State& state) { return StateJson(state).dump(); }

std::string StatesBody(const v1::ListStatesResponse& states) {
  OrderedJson data = OrderedJson::array();
  for (const v1::StoredState& state : states.states()) {
    data.push_back({{"handle", state.handle()},
                    {"bytes", state.bytes()},
                    {"expires_at", TimeOrNull(state.expires_at())}});
  }
  return OrderedJson{{"object", "list"}, {"data", std::move(data)}}.dump();
}

std::string ForkBody(const v1::ForkStateResponse& fork) {
  return OrderedJson{{"handles", fork.handles()}}.dump();
}

std::string DeletedBody(const std::string& handle) {
  return OrderedJson{{"handle", handle}, {"deleted", true}}.dump();
}

}  // namespace hippodrome
