// Tokens by id and by text while a vocabulary is made.
#ifndef HIPPODROME_TOOLS_TRAIN_TOKENIZER_TOKEN_TABLE_H_
#define HIPPODROME_TOOLS_TRAIN_TOKENIZER_TOKEN_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace hippodrome {

class TokenTable {
 public:
  // The id of the token, a new one if it is not there.
  int32_t Add(const std::string& token) {
    const auto [found, is_new] = ids_.emplace(token, static_cast<int32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(token);
    return found->second;
  }
  // The id, or -1.
  int32_t Find(const std::string& token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? -1 : found->second;
  }

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  std::vector<std::string> tokens_;
  absl::flat_hash_map<std::string, int32_t> ids_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_TOKENIZER_TOKEN_TABLE_H_
