// States as JSON: see states.proto.
#ifndef HIPPODROME_SERVER_JSON_STATE_JSON_H_
#define HIPPODROME_SERVER_JSON_STATE_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "hippodrome/v1/states.pb.h"
#include "server/json/request_fields.h"

namespace hippodrome {

extern const RequestFields kForkFields;

// The `state` of a request as GenerateRequest has it: a handle as it stands, else the bytes of a
// file in base64. kInvalidArgument for what is neither.
absl::StatusOr<std::string> StateFromText(const std::string& text);

// {"n"} of a body that may be empty. Ranges are for StateHandlers.
absl::StatusOr<v1::ForkStateRequest> ParseFork(const std::string& body);

// {"handle", "position", "bytes", "exact", "expires_at", "data"}, the last where there is one;
// null for what is not known.
nlohmann::ordered_json StateJson(const v1::State& state);
std::string StateBody(const v1::State& state);
// {"object": "list", "data": [{"handle", "bytes", "expires_at"}]}
std::string StatesBody(const v1::ListStatesResponse& states);
// {"handles": [...]}
std::string ForkBody(const v1::ForkStateResponse& fork);
// {"handle", "deleted": true}
std::string DeletedBody(const std::string& handle);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_STATE_JSON_H_
