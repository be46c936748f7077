// The tokens and merges of a byte-pair encoding.
#ifndef HIPPODROME_ENGINE_TOKENIZER_BPE_VOCABULARY_H_
#define HIPPODROME_ENGINE_TOKENIZER_BPE_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace hippodrome {

// What two adjacent tokens become.
struct BpeMerge {
  uint32_t rank = 0;  // below 2^24; lower goes first
  int32_t token = 0;
};

// Immutable once parsed.
struct BpeVocabulary {
  std::vector<std::string> tokens;                 // by id, as bytes
  std::array<int32_t, 256> byte_tokens{};          // ids of the single bytes
  absl::flat_hash_map<uint64_t, BpeMerge> merges;  // by PairKey
  int32_t end_of_text = -1;

  static uint64_t PairKey(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
};

// From the texts of vocab.json and merges.txt. Every byte and both sides and the result of every
// merge must be tokens. Errors: kInvalidArgument with the file and the line or token at fault.
absl::StatusOr<BpeVocabulary> ParseBpeVocabulary(const std::string& vocab_json,
                                                 const std::string& merges);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_BPE_VOCABULARY_H_
