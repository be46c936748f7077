// Byte-level byte-pair encoding with the GPT-2 splitting pattern.
#ifndef HIPPODROME_ENGINE_TOKENIZER_BPE_H_
#define HIPPODROME_ENGINE_TOKENIZER_BPE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

// Text to token ids and back. Any byte string encodes, and decodes to itself. Thread-safe.
class BpeTokenizer {
 public:
  // From the texts of vocab.json ({"token": id}, ids 0..n-1, each once) and merges.txt (a pair per
  // line, best first; a first line "#version: .." is skipped). Errors: kInvalidArgument with the
  // line or token at fault.
  static absl::StatusOr<std::unique_ptr<BpeTokenizer>> Parse(const std::string& vocab_json,
                                                             const std::string& merges);
  // Reads DIR/vocab.json and DIR/merges.txt. Errors: as above; kNotFound when both are absent.
  static absl::StatusOr<std::unique_ptr<BpeTokenizer>> Read(const std::string& directory);
  ~BpeTokenizer();

  int64_t vocab_size() const;
  // The id of "<|endoftext|>", or -1.
  int32_t end_of_text() const;

  // Special tokens in the text are ordinary characters. Bytes that are not UTF-8 are kept.
  std::vector<int32_t> Encode(const std::string& text) const;
  // The bytes of one token; "" for ids that do not exist. "<|endoftext|>" gives its own name.
  const std::string& Bytes(int32_t id) const;
  // The bytes of all tokens, adjacent (a prefix or suffix may be an incomplete UTF-8 character).
  std::string Decode(std::span<const int32_t> ids) const;

 private:
  struct Impl;
  explicit BpeTokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_BPE_H_
