// The tokens of a text and where they stand in it, for either kind of model.
#ifndef HIPPODROME_SERVER_HANDLERS_TOKEN_PLACES_H_
#define HIPPODROME_SERVER_HANDLERS_TOKEN_PLACES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/handlers/served_model.h"

namespace hippodrome {

struct PlacedToken {
  int32_t id = 0;
  std::string text;      // the part of the input; of a token that was added, its name
  bool special = false;  // it was added
  std::optional<std::pair<int64_t, int64_t>> place;  // code points [begin, end); absent if added
};

// In the order of the text. `add_special`: with [CLS] and [SEP], where the model takes them. A
// token that holds a part of a character has the place of the whole one. kFailedPrecondition
// without a tokenizer.
absl::StatusOr<std::vector<PlacedToken>> PlaceTokens(ServedModel& model, const std::string& text,
                                                     bool add_special);

// Whether a token stands for no text: those of the tokenizer's layout, and the end of a text.
bool IsSpecialToken(ServedModel& model, int32_t id);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_TOKEN_PLACES_H_
