#include "server/json/request_fields.h"

#include <string_view>
#include <vector>

namespace hippodrome {

absl::Status RefuseUnknown(const Json& object, RequestFields fields) {
  std::vector<std::string_view> names;
  for (const RequestField& field : fields) names.emplace_back(field.name);
  return CheckFields(object, names);
}

}  // namespace hippodrome
