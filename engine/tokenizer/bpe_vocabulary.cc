#include "engine/tokenizer/bpe_vocabulary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/base/json_object.h"
#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/tokenizer/byte_symbols.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;
using TokenIds = absl::flat_hash_map<std::string, int32_t>;

constexpr size_t kMostTokens = 1 << 24;
constexpr size_t kMostMerges = 1 << 24;

absl::Status AddToken(const std::string& symbols, const Json& id, std::vector<std::string>& tokens,
                      TokenIds& ids) {
  const std::string where = "vocab.json: token \"" + OneLine(symbols) + "\"";
  const auto bytes = BytesOfSymbols(symbols);
  if (!bytes || bytes->empty()) {
    return InvalidArgument(where + " is not written in byte-level symbols");
  }
  if (!id.is_number_unsigned() || id.get<uint64_t>() >= tokens.size()) {
    return InvalidArgument(fmt::format("{} has id {}, expected an integer in [0, {}]", where,
                                       OneLine(id.dump()), tokens.size() - 1));
  }
  std::string& token = tokens[id.get<size_t>()];
  if (!token.empty()) {
    return InvalidArgument(fmt::format("{} has id {}, which another token has", where, id.dump()));
  }
  token = *bytes;
  ids.emplace(*bytes, id.get<int32_t>());
  return absl::OkStatus();
}

absl::StatusOr<TokenIds> ReadTokens(const std::string& vocab_json, BpeVocabulary& vocabulary) {
  const auto json = ParseJsonObject(vocab_json);
  if (!json.ok()) return InvalidArgument("vocab.json: " + Message(json.status()));
  if (json->size() > kMostTokens) return InvalidArgument("vocab.json: more than 2^24 tokens");
  vocabulary.tokens.resize(json->size());
  TokenIds ids;
  ids.reserve(json->size());
  for (const auto& [symbols, id] : json->items()) {
    HIPPODROME_RETURN_IF_ERROR(AddToken(symbols, id, vocabulary.tokens, ids));
  }
  return ids;
}

absl::Status FindBytes(const TokenIds& ids, BpeVocabulary& vocabulary) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(std::string(1, static_cast<char>(byte)));
    if (found == ids.end()) {
      return InvalidArgument(fmt::format("vocab.json: there is no token for byte {} (\"{}\")", byte,
                                         SymbolOfByte(static_cast<uint8_t>(byte))));
    }
    vocabulary.byte_tokens[byte] = found->second;
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> TokenOf(const TokenIds& ids, const std::string& bytes) {
  const auto found = ids.find(bytes);
  if (found != ids.end()) return found->second;
  return InvalidArgument("\"" + OneLine(bytes) + "\" is not in vocab.json");
}

// Adds the merge "left right".
absl::Status AddMerge(std::string_view line, const TokenIds& ids, BpeVocabulary& vocabulary) {
  const size_t space = line.find(' ');
  if (space == line.npos) return InvalidArgument("expected two tokens and a space between");
  const auto left = BytesOfSymbols(line.substr(0, space));
  const auto right = BytesOfSymbols(line.substr(space + 1));
  if (!left || !right || left->empty() || right->empty()) {
    return InvalidArgument("expected two tokens in byte-level symbols and a space between");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const int32_t left_id, TokenOf(ids, *left));
  HIPPODROME_ASSIGN_OR_RETURN(const int32_t right_id, TokenOf(ids, *right));
  HIPPODROME_ASSIGN_OR_RETURN(const int32_t merged_id, TokenOf(ids, *left + *right));
  if (vocabulary.merges.size() == kMostMerges) return InvalidArgument("more than 2^24 merges");
  const uint32_t rank = static_cast<uint32_t>(vocabulary.merges.size());
  const auto key = BpeVocabulary::PairKey(left_id, right_id);
  if (!vocabulary.merges.emplace(key, BpeMerge{rank, merged_id}).second) {
    return InvalidArgument("this merge appears twice");
  }
  return absl::OkStatus();
}

absl::Status ReadMerges(std::string_view text, const TokenIds& ids, BpeVocabulary& vocabulary) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const absl::Status status = AddMerge(line, ids, vocabulary);
    if (status.ok()) continue;
    return InvalidArgument(
        fmt::format("merges.txt:{}: \"{}\": {}", number, OneLine(line), Message(status)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BpeVocabulary> ParseBpeVocabulary(const std::string& vocab_json,
                                                 const std::string& merges) {
  BpeVocabulary vocabulary;
  HIPPODROME_ASSIGN_OR_RETURN(const TokenIds ids, ReadTokens(vocab_json, vocabulary));
  HIPPODROME_RETURN_IF_ERROR(FindBytes(ids, vocabulary));
  HIPPODROME_RETURN_IF_ERROR(ReadMerges(merges, ids, vocabulary));
  const auto end_of_text = ids.find("<|endoftext|>");
  if (end_of_text != ids.end()) vocabulary.end_of_text = end_of_text->second;
  return vocabulary;
}

}  // namespace hippodrome
